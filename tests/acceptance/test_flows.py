"""Flows on a real line: keys go from the telephone to the menu and back as exact words."""

import pytest

from callflows.stock import LINE_BROKE, SAY_AGAIN
from ivr import shelf
from ivr.phone.record import CallEvent, EndReason, EventKind
from ivr.phone.script import AfterReply, BreakStream, Dtmf, HangUp, Wait
from ivr.sandbox.think import think
from memory.calls import CallStatus
from tests.acceptance.businesses import FRONT_DESK, Json
from tests.acceptance.line import say
from tests.acceptance.model import GREETING, told, turn
from tests.acceptance.world import Act, Place, until

MENU: Json = {
    "start": "menu",
    "operator": "front_desk",
    "nodes": {
        "menu": {
            "type": "menu",
            "say": "For your PIN press one, for the hours press two.",
            "options": {"1": {"to": "pin"}, "2": {"to": "hours", "words": ["opening hours"]}},
        },
        "pin": {
            "type": "collect",
            "slot": "pin",
            "kind": "digits",
            "max_digits": 4,
            "by": "keys",
            "secret": True,
            "say": "Enter it now.",
            "to": "thanks",
        },
        "thanks": {"type": "hangup", "say": "Thank you and goodbye."},
        "hours": {"type": "say", "say": "We open at nine.", "to": "menu"},
    },
}
TWO_MS = 5_000
"""The service speaks twice, greeting and menu: a silence that is longer than what lies between them."""
PAPERS: Json = {
    "documents": [
        {"title": "House rules", "text": "Bicycles may stand in the yard.\n\nDogs are welcome."},
    ]
}


async def keys_lead_through_a_menu(place: Place) -> None:
    """What `ivr call --dtmf` does: the last of the keys ends the entry, and that the call."""
    async with place.world([GREETING], flows={"alpha": MENU}) as world:
        record = await world.call(
            Dtmf("2", AfterReply(TWO_MS)), Dtmf("1", AfterReply(2_500)), Dtmf("7391", AfterReply(2_500))
        )
        row = await world.ended(record.call_sid)

        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert row.status is CallStatus.FINISHED
        assert [e.text for e in record.of(EventKind.DTMF)] == list("217391")
        said = world.model.own_words()
        assert said[:2] == ["Alpha Dental, how can I help you?", MENU["nodes"]["menu"]["say"]]
        assert said[-2:] == ["Enter it now.", "Thank you and goodbye."]
        assert f"We open at nine. {MENU['nodes']['menu']['say']}" in said
        assert place.rows("SELECT count(*) FROM calls WHERE snapshot::text LIKE '%7391%'") == [(0,)]
        assert "7391" not in str(world.watch.logs)


async def words_choose_and_zero_reaches_the_operator(place: Place) -> None:
    script = [GREETING, turn("your opening hours please", "never said")]
    async with place.world(script, flows={"alpha": MENU}) as world:
        record = await world.call(say(gap_ms=TWO_MS), Dtmf("0", AfterReply(2_500)))
        row = await world.ended(record.call_sid)

        assert row.status is CallStatus.TRANSFERRED
        assert f"Dial {FRONT_DESK}" in [e.text for e in record.of(EventKind.VERB)]
        assert SAY_AGAIN["en"] not in world.model.own_words()
        ((user_text, _),) = await world.words(record.call_sid)
        assert user_text == "your opening hours please"


async def a_changed_file_is_taken_up_and_a_bad_one_is_not(place: Place) -> None:
    """The call under way keeps the flow it began with, on its second stream too; the next call has the new one."""
    async with place.world([GREETING], flows={"alpha": MENU}) as world:
        folder, book = place.folder / "flows", world.worker.service.book
        file = folder / "alpha.yaml"
        new = file.read_text().replace(MENU["nodes"]["menu"]["say"], "A new menu.")

        def change(event: CallEvent) -> None:
            if event.kind is EventKind.HEARD and "A new menu." not in file.read_text():
                file.write_text(new)

        steps = (Wait(3_500), BreakStream(), HangUp(AfterReply(TWO_MS)))
        record = await world.call(*steps, on_event=change)
        assert record.violations == ()
        said = world.model.own_words()
        assert (said[-2], said[-1]) == (LINE_BROKE["en"], MENU["nodes"]["menu"]["say"])
        await world.call(HangUp(AfterReply(TWO_MS)))
        assert world.model.own_words()[-1] == "A new menu."

        (folder / "beta.yaml").write_text("id: [")
        await until(lambda: bool(book.fault))
        assert "beta.yaml:1" in book.fault
        status, body = await world.worker.readiness()
        assert (status, body["warnings"]) == (200, ["flow_files_refused"])
        assert set(book.businesses) == {"alpha", "beta"}


async def what_stands_only_in_a_document_is_answered(place: Place) -> None:
    """By what the model is given: the offline sandbox would answer with it. A change of the file changes it."""
    script = [GREETING, turn("may bicycles stand somewhere", "one moment")]
    async with place.world(script, flows={"alpha": PAPERS}) as world:
        await world.call(say(gap_ms=2_500), HangUp(AfterReply(2_500)))
        (question, *_) = world.model.answered()
        assert "- House rules: Bicycles may stand in the yard." in told(question)
        assert think(question).say == "Bicycles may stand in the yard."

        file = place.folder / "flows" / "alpha.yaml"
        file.write_text(file.read_text().replace("in the yard", "at the gate"))
        passages = "SELECT passage FROM business_facts ORDER BY fact_id LIMIT 1"
        await until(lambda: place.rows(passages) == [("Bicycles may stand at the gate.",)])


async def test_menus_by_key_and_voice_and_files_that_change(
    act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "LOOK_EVERY_S", 0.2)
    await act(
        keys_lead_through_a_menu,
        words_choose_and_zero_reaches_the_operator,
        a_changed_file_is_taken_up_and_a_bad_one_is_not,
    )


async def test_documents_are_looked_up(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "LOOK_EVERY_S", 0.2)
    await act(what_stands_only_in_a_document_is_answered)
