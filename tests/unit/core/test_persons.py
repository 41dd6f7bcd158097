"""What a caller may have us keep, or not: a refusal to be recorded, a wish to be forgotten. Words only take away."""

from dataclasses import replace

import pytest

from callflows.model import Business, Consent
from ivr.core import commands as do
from ivr.core.setup import restore
from ivr.core.standing import Keeps, Standing, Wish
from memory.model import Trust
from tests.unit.core.harness import SPEECH, Answer, World, calling, clinic, speech

RECORDED = "This call is recorded."


def recorded(refusal: str = "no_audio") -> Business:
    business = clinic("start: main", f"announcement: {RECORDED}\nstart: main")
    return business.model_copy(update={"consent": Consent.model_validate({"refusal": refusal})})


def talk(business: Business, *turns: tuple[str, Answer], standing: Standing | None = None) -> World:
    """Each turn's answer, and the one after it where it only calls a function."""
    answers = [a for _, answer in turns for a in ([answer] if answer.audio_ms else [answer, speech("Yes.")])]
    world = World(*answers, business=business, opening=f"{business.greeting} {RECORDED}", standing=standing)
    world.greet()
    for words, _ in turns:
        world.says(words)
        world.run(7_000)
    return world


def standing_of(world: World) -> Standing:
    found = restore(world.of(do.SaveSnapshot)[-1].snapshot).standing
    assert found is not None
    return found


def tools_of(reply: do.StartReply) -> set[str]:
    return {tool.name for tool in reply.tools}


def test_nobody_talks_over_the_announcement() -> None:
    world = World(business=recorded(), opening=f"Hello. {RECORDED}")
    world.run(1_000)
    world.says("Hi, my card number is", lasting_ms=800)
    world.run(800)
    heard = b"".join(command.ulaw for command in world.of(do.Hear))
    assert len(heard) > 8 * 1_000
    assert SPEECH not in heard
    assert world.of(do.SendClear) == []


def test_an_opening_without_it_may_be_talked_over() -> None:
    world = World(business=recorded(), opening="Sorry, the line broke.")
    world.run(1_000)
    world.says("What I wanted to ask is this", lasting_ms=1_500)
    world.run(8_000)
    assert world.of(do.SendClear)


def test_after_a_refusal_only_words_are_kept() -> None:
    world = talk(
        recorded(),
        ("Hello there.", speech("Hello.")),
        ("Please do not record this.", calling(("refuse_recording", "{}"))),
        ("When do you open?", speech("At nine.")),
    )
    first, *rest = world.exchanges()
    assert first.user_ulaw and first.reply_ulaw
    assert [(e.user_text, e.user_ulaw, e.reply_ulaw) for e in rest] == [
        ("Please do not record this.", b"", b""),
        ("When do you open?", b"", b""),
    ]
    assert "refuse_recording" in tools_of(world.asked()[0])
    assert "refuse_recording" not in tools_of(world.asked()[-1])
    assert standing_of(world).keeps is Keeps.WORDS


def test_or_nothing_at_all_and_the_call_goes_on_all_the_same() -> None:
    world = talk(
        recorded("no_memory"),
        ("Please do not record this.", calling(("refuse_recording", "{}"))),
        ("I have a red car.", speech("Noted.")),
        ("It has a flat tyre.", speech("Noted too.")),
        ("So what do I have?", speech("A red car.")),
    )
    for exchange in world.exchanges():
        assert (exchange.user_text, exchange.reply_text, exchange.user_ulaw, exchange.states) == (
            "",
            "",
            b"",
            {},
        )
        assert exchange.usage["input_text_tokens"] > 0
    last = repr(world.asked()[-1].input)
    assert "red car" in last and "flat tyre" in last
    assert standing_of(world).keeps is Keeps.NOTHING
    world.hang_up()
    world.run(3_000)
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]["slots"] == {}


def test_without_an_announcement_nobody_is_asked() -> None:
    world = World(speech("Hello."))
    world.greet()
    world.says("Hello there.")
    world.run(5_000)
    assert "refuse_recording" not in tools_of(world.asked()[0])


def test_who_wants_to_be_forgotten_confirms_it_in_a_later_turn() -> None:
    both = calling(("forget_me", "{}"), ("confirm_forget_me", "{}"))
    world = talk(
        clinic(),
        ("Forget everything about me.", both),
        ("Yes, really.", calling(("confirm_forget_me", "{}"))),
        ("Thank you.", speech("You're welcome.")),
        standing=Standing(Trust.ATTESTED),
    )
    asked = world.asked()
    assert "confirm_forget_me" not in tools_of(asked[0])
    assert "unknown_function" in repr(asked[1].input)
    wishes = [restore(s.snapshot).standing.wish for s in world.of(do.SaveSnapshot)]  # type: ignore[union-attr]
    assert Wish.ASKED in wishes
    assert wishes[-1] is Wish.CONFIRMED
    assert {"forget_me", "confirm_forget_me"}.isdisjoint(tools_of(asked[-1]))


@pytest.mark.parametrize(
    "standing",
    [
        Standing(Trust.NUMBER),
        Standing(Trust.NONE),
        Standing(Trust.ATTESTED, is_shared=True),
        Standing(Trust.VERIFIED, is_other=True),
    ],
)
def test_nobody_has_another_person_forgotten(standing: Standing) -> None:
    world = talk(
        clinic(),
        ("Forget everything about me.", calling(("forget_me", "{}"))),
        ("Yes, really.", calling(("confirm_forget_me", "{}"))),
        standing=standing,
    )
    assert standing_of(world).wish is Wish.NONE
    assert all({"forget_me", "confirm_forget_me"}.isdisjoint(tools_of(reply)) for reply in world.asked())
    asked = replace(standing, wish=Wish.ASKED, wished_no=1)
    assert not asked.may_confirm(2)


def test_a_wish_is_not_another_persons_to_confirm() -> None:
    world = talk(
        clinic(),
        ("Forget everything about me.", calling(("forget_me", "{}"))),
        ("This is Ben now.", calling(("another_person", "{}"))),
        ("Yes, really.", calling(("confirm_forget_me", "{}"))),
        standing=Standing(Trust.ATTESTED),
    )
    assert standing_of(world).wish is Wish.ASKED
