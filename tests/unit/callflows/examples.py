"""Flow files the tests start from."""

from hypothesis import HealthCheck, settings

from callflows.model import Business
from callflows.parse import parse_text

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For property tests: no time limit, which a slow machine would break."""

CLINIC = """\
id: clinic
name: The Clinic
numbers: ["+16175550101"]
timezone: America/New_York
greeting: Hello, this is the clinic.
instructions: Be kind.
facts:
  - We open at nine.
  - A check-up costs ninety dollars.
transfers:
  desk: {number: "+16175550102", description: reception, say: One moment.}
  nurse: {number: "+16175550103", description: the nurse on call}
start: main
nodes:
  main:
    type: talk
    instructions: Answer questions.
    transfers: [desk]
    exits:
      booking: {to: booking, when: the caller wants an appointment}
      nurse: {to: nurse, when: the caller is in pain}
      done: {to: bye, when: the caller is done}
  booking:
    type: talk
    topic: booking an appointment
    instructions: Ask which day suits.
    exits:
      back: {to: main, when: something else is wanted}
  nurse: {type: transfer, target: nurse, say: I am getting the nurse.}
  bye: {type: hangup, say: Goodbye.}
disclosure: ""
"""


def clinic(old: str = "", new: str = "") -> Business:
    """The clinic, with `old` in its file replaced by `new`."""
    return parse_text(changed(old, new), "clinic.yaml")


def changed(old: str, new: str) -> str:
    """The clinic's file with `old` replaced; a test that changes nothing would prove nothing."""
    text = CLINIC.replace(old, new, 1)
    if old and text == CLINIC:
        raise ValueError(f"the example holds no {old!r}")
    return text
