"""Whole calls whose exact words a text-to-speech endpoint says: a double of it beside the scripted model."""

from ivr.phone.script import AfterReply, Dtmf, HangUp
from tests.acceptance.model import GREETING
from tests.acceptance.test_flows import MENU
from tests.acceptance.world import Act, Place
from tests.speech_double import speech_double

HELLO = "Alpha Dental, how can I help you?"
TWO_MS = 5_000
"""Greeting and menu: a silence that is longer than what lies between them."""
KEY = "sk-never-to-be-seen"


async def exact_words_are_the_endpoints(place: Place) -> None:
    """Greeting, menu, answer to a key: word for word, prepared before the call, and not the model's to say."""
    async with speech_double() as double:
        env = {"OPENAI_BASE_URL": double.url, "OPENAI_API_KEY": KEY, "IVR_SPEECH_MODEL": "some-tts"}
        async with place.world([GREETING], flows={"alpha": MENU}, **env) as world:
            menu = MENU["nodes"]["menu"]["say"]
            assert {HELLO, menu} <= set(double.said())
            before = len(double.asked)
            record = await world.call(Dtmf("1", AfterReply(TWO_MS)), HangUp(AfterReply(TWO_MS)))
            await world.ended(record.call_sid)
            assert record.violations == ()
            assert len(double.asked) == before
            assert world.model.own_words() == []
            assert {each["model"] for each in double.asked} == {"some-tts"}
            assert len(record.heard_ulaw) > 8 * 100 * len(HELLO.split())
            assert KEY not in str(world.watch.logs)


async def without_the_endpoint_the_model_says_them(place: Place) -> None:
    async with speech_double() as double:
        double.faults = ["503"] * 500
        async with place.world([GREETING], flows={"alpha": MENU}, OPENAI_BASE_URL=double.url) as world:
            record = await world.call(HangUp(AfterReply(TWO_MS)))
            await world.ended(record.call_sid)
            assert record.violations == ()
            assert world.model.own_words()[0] == HELLO
            _, body = await world.worker.readiness()
            assert "speech_endpoint_failed" in body["warnings"]


async def test_whole_calls_with_an_endpoint(act: Act) -> None:
    await act(exact_words_are_the_endpoints, without_the_endpoint_the_model_says_them)
