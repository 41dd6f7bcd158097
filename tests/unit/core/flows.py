"""A business with a menu, an entry and a secret, for what the flow itself does in a call."""

from callflows.model import Business
from callflows.parse import parse_text

BANK = """\
id: bank
name: The Bank
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Bank.
transfers:
  desk: {number: "+16175550102", description: a person, say: Connecting you.}
operator: desk
limits: {max_call_minutes: 5}
emergency:
  - {words: [my house is on fire], say: Please hang up and dial nine one one.}
start: menu
nodes:
  menu:
    type: menu
    say: For balances press one, for opening hours press two.
    options:
      "1": {to: pin, words: [balance, balances]}
      "2": {to: hours, words: [opening hours]}
      "3": {to: notice, words: [notice]}
      "4": {to: account, words: [account]}
      "5": {to: help, words: [help]}
    no_input: {say: ["Are you there?"], times: 1, to: bye}
    no_match: {say: ["Pardon?"], times: 1, to: bye}
  pin:
    type: collect
    slot: pin
    kind: digits
    min_digits: 4
    max_digits: 4
    by: keys
    secret: true
    say: Enter your PIN.
    to: balance
  balance: {type: hangup, say: Your balance is nine dollars.}
  hours: {type: say, say: We open at nine., to: menu}
  notice: {type: say, say: This is important., interruptible: false, to: menu}
  account:
    type: collect
    slot: account
    kind: digits
    say: Enter your account number.
    confirm: You said {account}. Right?
    to: help
  help: {type: talk, instructions: Help the caller., exits: {back: {to: menu, when: the caller wants the menu}}}
  bye: {type: hangup, say: Goodbye then.}
"""


def bank(old: str = "", new: str = "") -> Business:
    """The bank, with `old` in its file replaced."""
    if old not in BANK:
        raise ValueError(f"the flow holds no {old!r}")
    return parse_text(BANK.replace(old, new, 1) if old else BANK, "bank.yaml")
