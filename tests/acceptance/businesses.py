"""Two businesses and two callers."""

from pathlib import Path
from typing import Any

import yaml

from ivr.phone.machine import Caller

Json = dict[str, Any]
TOKEN = "an auth token for tests"
DENTAL, PLUMBING = "+16175550140", "+13125550160"
FRONT_DESK = "+16175550141"
ATTESTED = "TN-Validation-Passed-A"
ANN, BEN = Caller("+12025550143", stir_verstat=ATTESTED), Caller("+12025550144", stir_verstat=ATTESTED)
BUSINESSES: Json = {
    "alpha": {
        "id": "alpha",
        "name": "Alpha Dental",
        "numbers": [DENTAL],
        "timezone": "America/New_York",
        "disclosure": "",
        "greeting": "Alpha Dental, how can I help you?",
        "transfers": {"front_desk": {"number": FRONT_DESK, "description": "books appointments"}},
        "on_model_down": {"say": "Our assistant is away.", "transfer": "front_desk"},
        "start": "talk",
        "nodes": {"talk": {"type": "talk", "instructions": "Help."}},
    },
    "beta": {
        "id": "beta",
        "name": "Beta Plumbing",
        "numbers": [PLUMBING],
        "timezone": "America/Chicago",
        "disclosure": "",
        "greeting": "Beta Plumbing, what can we do for you?",
        "on_model_down": {"say": "Nobody can take your call now."},
        "start": "talk",
        "nodes": {"talk": {"type": "talk", "instructions": "Help."}},
    },
}


def write_flows(folder: Path, changes: dict[str, Json] | None = None) -> Path:
    """The two businesses as files, with some of their settings changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, business in BUSINESSES.items():
        text = yaml.safe_dump(business | (changes or {}).get(name, {}), sort_keys=False)
        (folder / f"{name}.yaml").write_text(text)
    return folder
