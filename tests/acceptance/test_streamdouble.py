"""The service under `streamdouble`, a simulator of Twilio's media streams that is not of our making."""

import secrets
from pathlib import Path
from typing import Any

import pytest
import websockets
from streamdouble.audio import frame_ulaw
from streamdouble.chaos import Impairments
from streamdouble.protocol import StreamIdentity
from streamdouble.scenario import Expect, Say, Scenario, Step, Wait, WaitFor
from streamdouble.session import Session, SessionConfig, SessionResult

from tests.acceptance.line import arrival, speech, stream_of, webhook
from tests.acceptance.model import GREETING, turn
from tests.acceptance.world import Act, Place, World, together


def spoken(duration_ms: int = 460) -> Say:
    """The caller speaks."""
    return Say(Path("tone"), frame_ulaw(speech(duration_ms)))


HEARD_OUT: tuple[Step, ...] = (WaitFor("audio"), WaitFor("quiet"), Expect("mark"))
CALM: tuple[Step, ...] = (*HEARD_OUT, spoken(), Wait(2.4), Expect("clear", negated=True))
INTERRUPTING: tuple[Step, ...] = (*HEARD_OUT, spoken(), Wait(1.4), spoken(1_000), WaitFor("clear"), Wait(2.0))


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The handshake's signature by URL: `streamdouble` sends no headers of its own accord."""
    signatures: dict[str, str] = {}
    plain = websockets.connect

    def connect(url: str, **options: Any) -> Any:
        headers = {"X-Twilio-Signature": signatures[url]}
        return plain(url, additional_headers=headers, proxy=None, **options)

    monkeypatch.setattr(websockets, "connect", connect)
    return signatures


async def call(
    world: World,
    signatures: dict[str, str],
    caller: str,
    steps: tuple[Step, ...],
    network: Impairments,
    seed: int = 7,
) -> SessionResult:
    """A call from webhook to hang-up; it reads our TwiML only as far as a stream needs."""
    call_sid = "CA" + secrets.token_hex(16)
    status, twiml = await webhook(world.line, "/twilio/voice", arrival(call_sid, caller))
    url, parameters = stream_of(twiml)
    assert status == 200
    signatures[url] = world.line.sign(url)
    session = Session(
        url,
        scenario=Scenario("call", list(steps)),
        identity=StreamIdentity(call_sid=call_sid),
        config=SessionConfig(
            custom_parameters=parameters,
            impairments=network,
            quiet_period_s=0.6,
            max_drain_s=3,
            chaos_seed=seed,
        ),
    )
    return await session.run()


def assert_sound(result: SessionResult) -> None:
    """Nothing that Twilio would object to; nothing that was expected stayed away."""
    assert (result.violations, result.unknown_events, result.warnings) == ([], [], [])
    assert result.failed_expectations == []
    assert (result.timed_out, result.closed_early) == (False, False)
    assert set(result.marks_echoed) <= set(result.marks_received)


async def three_calls(place: Place, signing: dict[str, str]) -> None:
    """At once: on a good line, on one with loss and jitter, and one that talks over the answer."""
    script = [
        GREETING,
        *(turn(f"question {n}", f"w1 w2 w3 w4 {n}", 1_200) for n in range(3)),
        turn("stop", "Yes"),
    ]
    async with place.world(script) as world:
        bad_line = Impairments(loss=0.05, jitter_ms=30, latency_ms=40)
        calm, lossy, interrupting = await together(
            call(world, signing, "+12025550150", CALM, Impairments()),
            call(world, signing, "+12025550151", CALM, bad_line),
            call(world, signing, "+12025550152", INTERRUPTING, Impairments()),
        )
        for result in (calm, lossy, interrupting):
            await world.ended(result.identity.call_sid)
            assert_sound(result)
        for result in (calm, lossy):
            assert result.clears_received == 0
            assert result.audio_duration_s == pytest.approx(1.6, abs=0.05)
            ((heard, said),) = await world.words(result.identity.call_sid)
            assert (heard[:8], said[:11]) == ("question", "w1 w2 w3 w4")
        assert lossy.frames_dropped > 0
        assert interrupting.clears_received == 1
        cut, last = await world.turns(interrupting.identity.call_sid)
        assert cut.page.interrupted
        assert len(cut.page.reply_text.split()) < 5
        assert (last.page.user_text, last.page.reply_text) == ("stop", "Yes")


async def bad_lines(place: Place, signing: dict[str, str]) -> None:
    """Loss, jitter and delay of several kinds, each lost frame counted; one caller talks over the answer. Not where
    much is lost: there the end of a turn is provisional for seconds, and the second speech goes on with the first.

    This simulator numbers only what it sends, so timestamps alone show what is lost.
    """
    lines = (
        (CALM, Impairments(loss=0.1, jitter_ms=60, latency_ms=20), 1),
        (CALM, Impairments(loss=0.02, jitter_ms=120, latency_ms=150), 2),
        (INTERRUPTING, Impairments(jitter_ms=40, latency_ms=120), 3),
    )
    script = [
        GREETING,
        *(turn(f"question {n}", f"w1 w2 w3 w4 {n}", 4_000) for n in range(3)),
        turn("stop", "Yes"),
    ]
    async with place.world(script) as world:
        results = await together(
            *(
                call(world, signing, f"+1202555016{seed}", steps, network, seed)
                for steps, network, seed in lines
            )
        )
        for result in results:
            await world.ended(result.identity.call_sid)
            assert_sound(result)
        assert [result.clears_received for result in results] == [0, 0, 1]
        dropped = sum(result.frames_dropped for result in results)
        lost_ms = await world.worker.metric("line_lost_ms_total")
        # What is lost before the first frame or behind the last one shows to nobody.
        assert 20 * (dropped - 8) <= lost_ms <= 20 * dropped
        assert dropped > 15


async def test_streamdouble_on_bad_lines(act: Act, signing: dict[str, str]) -> None:
    await act(lambda place: bad_lines(place, signing))


async def test_streamdouble_places_calls(act: Act, signing: dict[str, str]) -> None:
    await act(lambda place: three_calls(place, signing))
