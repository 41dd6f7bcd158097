"""Partial words from a real server through the real link: the call recalls on them before the caller has finished."""

import asyncio
import itertools
from pathlib import Path

from callflows import engine
from callflows.parse import load_folder
from ivr.adapters.openai_realtime import RealtimeServer
from ivr.audio.g711 import pcm16_to_ulaw
from ivr.audio.resample import Downsampler
from ivr.call import Call, Surroundings
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from ivr.core.units import FRAME_BYTES, FRAME_MS, ULAW_SILENCE
from ivr.pacing import MonotonicClock
from ivr.places import SHIPPED_FLOWS
from ivr.sandbox.pcm import Tone
from ivr.sandbox.server import running
from tests.unit.core.call_rig import FakeJournal, FakeLine, FakeRecall

WHOLE = "when do you open on Saturday morning"
SCRIPT = f"""
partials_ms: 150
turns:
  - {{any: true, transcript: {WHOLE}, transcript_delay_ms: 2000, say: At nine., audio_ms: 400}}
"""


def voice(lasting_ms: int) -> list[bytes]:
    ulaw = pcm16_to_ulaw(Downsampler().feed(Tone(300, lasting_ms).pcm24k()))
    return [ulaw[at : at + FRAME_BYTES] for at in range(0, len(ulaw) - FRAME_BYTES + 1, FRAME_BYTES)]


async def test_the_recall_is_there_before_a_transcript_that_is_late(tmp_path: Path) -> None:
    """All words were told early, the transcript comes 2 s later: the answer is asked for by those words."""
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    line, recall, journal, clock = FakeLine(), FakeRecall(), FakeJournal(), MonotonicClock()
    business = load_folder(SHIPPED_FLOWS).businesses["northside-plumbing"]
    core = CallCore(CallSetup("CA1", business, engine.start(business), opening=""), clock.now_ms())
    async with running("127.0.0.1", 0, script=script) as port:
        server = RealtimeServer(f"ws://127.0.0.1:{port}/v1", None, None, "m", "t")
        around = Surroundings(line, server.link, recall, journal, clock, lambda _: lambda: None)
        calling = asyncio.create_task(Call(core, around).run())
        sound = [*[ULAW_SILENCE * FRAME_BYTES] * 10, *voice(2_500)]
        for no, frame in enumerate(itertools.chain(sound, itertools.repeat(ULAW_SILENCE * FRAME_BYTES))):
            line.incoming.put_nowait(ev.LineFrame(no + 2, no + 1, no * FRAME_MS, frame))
            await asyncio.sleep(FRAME_MS / 1_000)
            if line.sound():  # the answer is heard: enough
                break
        line.incoming.put_nowait(ev.LineStopped())
        await calling
        await server.close()
    assert server.early_words.seen is True
    assert recall.queries[0] != WHOLE
    assert WHOLE.startswith(recall.queries[0])
    assert recall.queries[-1] == WHOLE
    (exchange,) = journal.exchanges()
    assert exchange.user_text == WHOLE
    assert exchange.states["latency_ms"]["recall"] == 0
