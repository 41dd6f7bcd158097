"""Call flows: what a business wants its callers to hear, as data. Pure; never telephony or memory."""
