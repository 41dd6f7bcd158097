"""Talk made up from a table of words: facts that can be asked for again, and as long as one likes. Pure."""

import random
from collections.abc import Iterator

from ivr.bench.locomo import Dialogue, DialoguePage, Question, Turn
from memory.parties import Parties

PAGES_A_CALL = 12
_RELATIONS = (
    "mother father sister brother neighbour cousin aunt uncle boss daughter son grandmother dentist tenant"
)
_THINGS = (
    "boiler piano kayak passport lawnmower wedding cake greenhouse bicycle wardrobe telescope caravan violin"
    " mortgage hamster orchard fireplace sailboat printer cottage saxophone scooter chandelier beehive trampoline"
    " aquarium tractor hammock accordion freezer pergola motorbike carpet"
)
_DONE = "repaired sold painted cleaned measured insured delivered moved replaced inspected"
_TOWNS = "Dover Leeds Oakham Bristol Carlisle Exeter Norwich Lincoln Durham Hereford Stirling Ludlow"
_WHO, _WHAT, _VERB, _PLACE = (words.split() for words in (_RELATIONS, _THINGS, _DONE, _TOWNS))
_CHAT = (
    "I have been thinking about it since this morning, and I wanted to tell you before I forget it again.",
    "It took longer than I expected, but in the end everybody was rather happy with it.",
    "You know how these things go, first nobody has time and then it all happens at once.",
    "I would not have believed it a year ago, but there we are, and I am glad that it is done.",
)
_REPLY = (
    "That sounds like a lot of work. I have made a note of it, and you can come back to it whenever you like.",
    "I see. It is good that you told me, because we can plan around it the next time that you call.",
    "Thank you for telling me. Is there anything about it that you would like me to look up for you?",
)


def made_up(pages: int, seed: int, name: str) -> Dialogue:
    """So many exchanges; every fact is of a pair of words that no other has, for as long as there are pairs."""
    rng = random.Random(seed)  # noqa: S311 - reproducible
    pairs = [(who, what) for who in _WHO for what in _WHAT]
    rng.shuffle(pairs)
    made = list(_exchanges(pages, rng, pairs, name))
    return Dialogue(
        name,
        Parties(),
        tuple(page for page, _ in made),
        tuple(question for _, question in made[: len(pairs)]),
    )


def _exchanges(
    count: int, rng: random.Random, pairs: list[tuple[str, str]], name: str
) -> Iterator[tuple[DialoguePage, Question]]:
    for number in range(count):
        who, what = pairs[number % len(pairs)]
        verb, place = rng.choice(_VERB), rng.choice(_PLACE)
        day, price = rng.randint(1, 28), rng.randint(20, 900)
        fact = f"My {who} had the {what} {verb} in {place} on the {day}th for {price} pounds."
        call = number // PAGES_A_CALL + 1
        user = Turn(f"{name}:{number}:0", 0, f"{fact} {rng.choice(_CHAT)}")
        reply = Turn(f"{name}:{number}:1", 1, rng.choice(_REPLY))
        question = Question(f"Where did my {who} have the {what} done, and for how much?", 4, (user.dia_id,))
        yield DialoguePage(call, (user, reply)), question
