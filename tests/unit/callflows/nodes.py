"""A business that uses every kind of node."""

from callflows.model import Business
from callflows.parse import parse_text

SHOP = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
languages: {es-US: {voice: cedar}}
disclosure: This is a machine.
greeting: The Shop.
announcement: Calls are recorded.
hours:
  office: {weekly: {mon-fri: "09:00-17:00"}, holidays: {country: US}}
callers: {blocked: ["+12025550199"], vip: ["+12025550143"], say: No.}
transfers:
  desk: {number: "+16175550102", description: reception, say: {en-US: One moment., es-US: Un momento.}}
  boss: {number: "+16175550103", description: the owner}
operator: desk
emergency: [{words: [fire], say: Dial nine one one.}, {words: [robbery], say: Stay calm., transfer: desk}]
start: vip
nodes:
  vip:
    type: branch
    cases: [{when: {caller: vip}, to: boss}]
    otherwise: open
  boss: {type: transfer, target: boss, say: To the owner.}
  open: {type: hours, hours: office, open: menu, closed: closed}
  closed: {type: hangup, say: We are closed.}
  menu:
    type: menu
    say: {en-US: "Press one to order, two for Spanish.", es-US: Pulse uno.}
    options:
      "1": {to: party, words: [order, orders]}
      "2": {to: spanish, words: [spanish]}
      "3": {to: main}
      "33": {to: pin}
    no_input: {say: [{en-US: "Hello?", es-US: "Hola?"}], times: 2, to: closed}
    no_match: {say: [{en-US: "Sorry?", es-US: "Perdone?"}, {en-US: Please., es-US: Por favor.}], times: 2}
  spanish: {type: language, language: es-US, to: menu}
  party: {type: collect, slot: party, kind: number, least: 1, most: 20, say: {en-US: "How many?", es-US: "Cuantos?"},
    confirm: {en-US: "{party}, right?", es-US: "{party}, verdad?"}, to: size}
  size:
    type: branch
    cases:
      - {when: {all: [{slot: party, op: above, value: 8}, {not: {language: es-US}}]}, to: boss}
      - {when: {any: [{slot: party, op: is, value: 1}, {slot: party, op: below, value: 0}]}, to: alone}
    otherwise: day
  alone: {type: say, say: {en-US: Just you., es-US: Solo usted.}, to: day}
  day: {type: collect, slot: day, kind: date, by: voice, say: {en-US: "Which day?", es-US: "Que dia?"}, to: thanks}
  thanks: {type: say, say: {en-US: "{party} on {day}.", es-US: "{party}, {day}."}, interruptible: false, to: main}
  pin: {type: collect, slot: pin, kind: digits, min_digits: 4, max_digits: 4, by: keys, secret: true,
    say: {en-US: "PIN?", es-US: "Clave?"}, to: check}
  check:
    type: branch
    cases: [{when: {slot: pin, value: "7391"}, to: boss}]
    otherwise: closed
  main:
    type: talk
    instructions: Help.
    exits: {again: {to: menu, when: asked}, done: {to: closed, when: done}}
"""


def shop(old: str = "", new: str = "") -> Business:
    """The shop, with `old` in its file replaced by `new`."""
    return parse_text(changed_shop(old, new), "shop.yaml")


def changed_shop(old: str = "", new: str = "") -> str:
    """The shop's file with `old` replaced; a test that changes nothing would prove nothing."""
    if old not in SHOP:
        raise ValueError(f"the example holds no {old!r}")
    return SHOP.replace(old, new, 1) if old else SHOP
