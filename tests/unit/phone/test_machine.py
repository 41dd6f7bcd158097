"""Whole calls in simulated time: no socket, no sleep."""

import base64

import pytest

from ivr.phone.board import DialOutcome
from ivr.phone.line import SILENT_FRAME
from ivr.phone.machine import RestUpdate
from ivr.phone.network import Network
from ivr.phone.record import EndReason, EventKind
from ivr.phone.script import (
    AfterReply,
    At,
    BargeIn,
    BreakStream,
    CallScript,
    DropLine,
    Dtmf,
    HangUp,
    Now,
    Say,
    Step,
)
from tests.unit.phone.harness import BASE, CONNECT, HANGUP, Bench, Json, media_index, setup, tone

CALL = {"/twilio/voice": [CONNECT], "/twilio/continue": [HANGUP]}


def _bench(*steps: Step, **changes: object) -> Bench:
    return Bench({path: list(texts) for path, texts in CALL.items()}, CallScript(steps), dict(changes))


def _document(body: str, *steps: Step, **changes: object) -> Bench:
    documents = {"/twilio/voice": [f"<Response>{body}</Response>"], "/next": [HANGUP]}
    return Bench(documents, CallScript(steps), dict(changes))


# -- the stream ----------------------------------------------------------------------------------


def test_a_stream_begins_as_twilios_does() -> None:
    bench = _bench()
    bench.run(100)

    assert [message["event"] for message in bench.sent[:3]] == ["connected", "start", "media"]
    assert bench.opened == ["wss://ivr.example.com/twilio/media"]
    start = bench.sent[1]
    assert start["sequenceNumber"] == "1"
    assert start["start"]["customParameters"] == {"token": "t1"}
    assert start["start"]["callSid"] == bench.machine.board.call_sid
    first = bench.sent[2]
    assert (first["sequenceNumber"], first["media"]["chunk"]) == ("2", "1")
    assert base64.b64decode(first["media"]["payload"]) == SILENT_FRAME


def test_frames_go_out_every_20_ms_with_silence_between_utterances() -> None:
    bench = _bench(Say(tone(100), "hi", At(200)))
    bench.run(1_000)

    frames = [base64.b64decode(message["media"]["payload"]) for message in bench.of("media")]
    assert len(frames) == 50
    assert b"".join(frames[9:14]) == tone(100)
    assert set(frames[:9] + frames[14:]) == {SILENT_FRAME}
    stamps = [int(message["media"]["timestamp"]) for message in bench.of("media")]
    assert stamps == [135 + 20 * at for at in range(50)]
    assert [event.text for event in bench.machine.board.events if event.kind is EventKind.SAID] == ["hi"]


def test_marks_are_echoed_when_played() -> None:
    bench = _bench()
    bench.run(100)
    bench.say(tone(200))
    bench.mark("a")
    bench.say(tone(100))
    bench.mark("b")

    reached: dict[str, int] = {}
    while len(reached) < 2:
        bench.run(bench.now_ms + 20)
        for message in bench.of("mark"):
            reached.setdefault(message["mark"]["name"], bench.now_ms)

    assert reached == {"a": 300, "b": 400}


def test_b011_after_a_clear_all_outstanding_marks_come_at_once_and_nothing_is_heard() -> None:
    bench = _bench()
    bench.run(100)
    for name in ("a", "b", "c"):
        bench.say(tone(200))
        bench.mark(name)
    bench.run(400)
    bench.clear()

    assert [message["mark"]["name"] for message in bench.of("mark")] == ["a", "b", "c"]
    bench.run(800)
    bench.machine.update(RestUpdate(status="completed"))
    record = bench.record()
    assert [event.text for event in record.of(EventKind.MARK)] == ["a"]
    assert [event.text for event in record.of(EventKind.MARK_CLEARED)] == ["b", "c"]
    assert [event.value for event in record.of(EventKind.CLEAR)] == [300]
    assert [(event.at_ms, event.until_ms) for event in record.of(EventKind.HEARD)] == [(100, 400)]
    assert record.heard_between(400, 800) == SILENT_FRAME * 20


def test_the_caller_barges_in() -> None:
    bench = _bench(Say(tone(300), "wait", BargeIn(500)))
    bench.run(100)
    bench.say(tone(2_000))
    bench.run(3_000)
    bench.machine.update(RestUpdate(status="completed"))

    said = bench.record().of(EventKind.SAID)
    assert [(event.at_ms, event.until_ms) for event in said] == [(600, 900)]


def test_the_caller_answers_after_the_far_side_and_the_delay_is_measured() -> None:
    bench = _bench(Say(tone(200), "one"), Say(tone(200), "two", AfterReply(gap_ms=300)), HangUp())
    bench.run(100)
    bench.say(tone(400))
    bench.run(1_460)
    bench.say(tone(100))
    bench.run(60_000)

    record = bench.record()
    said = [(event.text, event.at_ms, event.until_ms) for event in record.of(EventKind.SAID)]
    # 500: far side done; 700 ms later the first; it answers at 1460; 300 ms after that, the second.
    assert said == [("one", 1_200, 1_400), ("two", 1_860, 2_060)]
    assert record.reply_delays_ms() == [60, None]


def test_keys_go_out_one_by_one() -> None:
    bench = _bench(Dtmf("12#", At(100)))
    bench.run(1_000)

    keys = bench.of("dtmf")
    assert [message["dtmf"] for message in keys] == [
        {"track": "inbound_track", "digit": digit} for digit in "12#"
    ]
    sequence = [int(message["sequenceNumber"]) for message in bench.sent[1:]]
    assert sequence == list(range(1, len(sequence) + 1))
    assert len(bench.of("media")) == 50


@pytest.mark.parametrize("numbered", [False, True])
def test_lost_frames_leave_a_jump_of_the_timestamp(numbered: bool) -> None:
    network = Network(lost=(False, False, True, False, False), numbered_gaps=numbered)
    bench = _bench(network=network)
    bench.run(200)

    # The trace belongs to the call: its frame 0 passed before the first tick's frame 1.
    assert [media_index(message) for message in bench.of("media")] == [0, 2, 3, 4, 5, 7, 8, 9]
    chunks = [int(message["media"]["chunk"]) for message in bench.of("media")]
    assert chunks == ([1, 3, 4, 5, 6, 8, 9, 10] if numbered else [1, 2, 3, 4, 5, 6, 7, 8])
    sequence = [int(message["sequenceNumber"]) for message in bench.of("media")]
    assert sequence == [chunk + 1 for chunk in chunks]


def test_late_frames_are_a_stall_and_a_burst() -> None:
    bench = _bench(network=Network(delay_ms=(0,) * 4 + (100,) + (0,) * 95))
    counts = []
    for until_ms in range(20, 241, 20):
        bench.run(until_ms)
        counts.append(len(bench.of("media")))

    assert counts == [1, 2, 3, 3, 3, 3, 3, 3, 9, 10, 11, 12]


def test_hanging_up_sends_stop_and_one_status() -> None:
    bench = _bench(HangUp(At(500)))
    bench.run(10_000)

    assert bench.machine.end is EndReason.CALLER_HUNG_UP
    assert bench.sent[-1]["event"] == "stop"
    assert bench.sent[-1]["stop"]["callSid"] == bench.machine.board.call_sid
    assert bench.closed == [False]
    assert [(url, form["CallStatus"]) for url, form in bench.notified] == [
        (f"{BASE}/twilio/status", "completed")
    ]
    assert [path for path, _ in bench.fetched] == [f"{BASE}/twilio/voice"]


def test_a_dropped_line_tells_nobody_anything() -> None:
    bench = _bench(DropLine(At(500)))
    bench.run(10_000)

    assert bench.machine.end is EndReason.LINE_DROPPED
    assert bench.closed == [True]
    assert bench.of("stop") == []
    assert bench.notified == []


def test_a_broken_stream_goes_on_after_connect_with_a_new_stream() -> None:
    bench = Bench(
        {"/twilio/voice": [CONNECT], "/twilio/continue": [CONNECT, HANGUP]},
        CallScript((BreakStream(At(300)), HangUp(At(900)))),
    )
    bench.run(10_000)

    assert bench.closed == [True, False]
    starts = bench.of("start")
    assert len({start["streamSid"] for start in starts}) == 2
    assert {start["start"]["callSid"] for start in starts} == {bench.machine.board.call_sid}
    assert [start["sequenceNumber"] for start in starts] == ["1", "1"]
    assert len(bench.of("stop")) == 1


def test_b059_a_stream_closed_by_the_service_goes_on_after_connect() -> None:
    bench = _bench()
    bench.run(200)
    bench.say(tone(1_000))
    bench.run(400)
    bench.close(1000)
    bench.run(1_000)

    assert bench.machine.end is EndReason.SERVICE_HUNG_UP
    assert [url for url, _ in bench.fetched] == [f"{BASE}/twilio/voice", f"{BASE}/twilio/continue"]
    assert bench.fetched[1][1]["CallStatus"] == "in-progress"
    ended = bench.record().of(EventKind.STREAM_ENDED)
    assert [event.value for event in ended] == [800]  # a farewell that was cut shows here


def test_b010_b019_what_the_service_does_wrong_is_told_and_survived() -> None:
    bench = _bench()
    bench.run(100)
    bench.tell({"event": "foo"})
    bench.tell({"event": "media", "media": {"payload": "!"}})
    for _ in range(11):
        bench.say(b"\xff" * 480_000)
    bench.run(200)

    assert [text.split(":")[0] for text in bench.machine.board.violations] == ["31924", "31924", "31931"]
    assert bench.machine.end is None


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("wss://h.example/m?token=1", "wss://h.example/m"),
        ("ws://h.example/m", None),
        ("https://h.example/m", None),
        ("", None),
        ("ws://127.0.0.1:8080/m", "ws://127.0.0.1:8080/m"),
        ("ws://[::1]:8080/m", "ws://[::1]:8080/m"),
        ("ws://localhost/m", "ws://localhost/m"),
    ],
)
def test_b094_where_a_stream_may_go(url: str, opened: str | None) -> None:
    bench = _document(f'<Connect><Stream url="{url}"/></Connect><Hangup/>')
    bench.run(200)

    assert bench.opened == ([opened] if opened else [])
    assert bool(bench.machine.board.violations) == ("?" in url or opened is None)
    assert (bench.machine.end is EndReason.SERVICE_HUNG_UP) == (opened is None)


def test_a_streams_status_callbacks_and_the_action_of_its_connect() -> None:
    body = '<Connect action="/next"><Stream url="wss://h/m" name="s" statusCallback="/cb"/></Connect><Pause/>'
    bench = _document(body, BreakStream(At(100)))
    bench.run(1_000)

    stream = [
        (form["StreamEvent"], form["StreamName"]) for url, form in bench.notified if url.endswith("/cb")
    ]
    assert stream == [("stream-started", "s"), ("stream-error", "s")]
    assert [url for url, _ in bench.fetched] == [f"{BASE}/twilio/voice", f"{BASE}/next"]


def test_a_refused_handshake_is_told_and_the_call_goes_on_after_connect() -> None:
    bench = _bench()
    leg = bench.machine.stream(bench.serial)
    assert leg is not None
    bench.close(1006)
    bench.machine.update(RestUpdate(twiml=CONNECT))
    refused = bench.machine.stream(bench.serial + 1)
    assert refused is not None
    refused.refused("HTTP 403")
    bench.machine.board.take_effects()
    bench.run(1_000)

    assert bench.machine.end is EndReason.SERVICE_HUNG_UP
    assert bench.record().violations == ("31920: the stream was refused: HTTP 403",)
    ended = [event.text for event in bench.record().of(EventKind.STREAM_ENDED)]
    assert ended == ["closed by the service: 1006", "refused"]


@pytest.mark.parametrize("url", ["http://[bad/x", "https://h:99999999/x"])
def test_a_url_that_is_none_ends_in_violations_not_in_an_exception(url: str) -> None:
    bench = _document(f"<Redirect>{url}</Redirect>")

    assert bench.machine.end is EndReason.FAILED
    assert bench.record().violations[0] == "11100: a URL that cannot be read"


# -- REST ----------------------------------------------------------------------------------------


def test_rest_completes_the_call() -> None:
    bench = _bench()
    bench.run(300)

    assert bench.machine.update(RestUpdate(status="completed"))
    bench.settle()
    assert bench.machine.end is EndReason.REST_COMPLETED
    assert bench.sent[-1]["event"] == "stop"
    assert [form["CallStatus"] for _, form in bench.notified] == ["completed"]
    assert not bench.machine.update(RestUpdate(status="completed"))


def test_rest_gives_other_twiml_and_the_stream_stops() -> None:
    bench = _bench()
    bench.run(300)

    bench.machine.update(RestUpdate(twiml="<Response><Pause length='1'/></Response>"))
    bench.settle()
    assert bench.sent[-1]["event"] == "stop"
    bench.run(10_000)
    assert bench.machine.end is EndReason.TWIML_ENDED
    assert bench.now_ms == 1_300
    assert len(bench.fetched) == 1  # what came after the old Connect is not run


def test_rest_sends_the_call_to_another_url() -> None:
    bench = _bench()
    bench.run(300)

    bench.machine.update(RestUpdate(url=f"{BASE}/twilio/continue"))
    bench.settle()
    assert bench.machine.end is EndReason.SERVICE_HUNG_UP
    assert len(bench.fetched) == 2


def test_an_answer_that_a_rest_update_has_overtaken_is_not_run() -> None:
    bench = _bench()
    bench.run(300)
    bench.machine.update(RestUpdate(twiml="<Response><Pause length='9'/></Response>"))

    bench.machine.document_arrived(1, 200, "text/xml", HANGUP)

    assert bench.machine.end is None


# -- the other verbs -----------------------------------------------------------------------------


def test_say_pause_and_play_are_heard_one_after_the_other() -> None:
    body = '<Say>Hello</Say><Pause length="1"/><Play>/beep.wav</Play>'
    audio = {f"{BASE}/beep.wav": tone(200)}
    documents = {"/twilio/voice": [f"<Response>{body}</Response>"]}
    bench = Bench(documents, changes={"voice": lambda text: tone(100 * len(text))}, audio=audio)
    bench.run(10_000)

    assert bench.machine.end is EndReason.TWIML_ENDED
    heard = [(event.at_ms, event.until_ms) for event in bench.record().of(EventKind.HEARD)]
    assert [end - start for start, end in heard if end is not None] == [500, 200]
    assert [event.text for event in bench.record().of(EventKind.PROMPT)] == ["Hello"]
    assert bench.record().violations == ()


def test_a_play_without_its_file_is_a_violation_and_the_call_goes_on() -> None:
    bench = _document("<Play>/none.wav</Play><Hangup/>")
    bench.run(1_000)

    assert bench.machine.end is EndReason.SERVICE_HUNG_UP
    assert [text.split(":")[0] for text in bench.record().violations] == ["11200"]


@pytest.mark.parametrize(
    ("attributes", "keys", "expected"),
    [
        ('numDigits="2"', "123", "12"),
        ('timeout="2"', "123#", "123"),
        ('timeout="2"', "12", "12"),
        ('timeout="2" actionOnEmptyResult="true"', "", ""),
        ('timeout="2"', "", None),
        ('timeout="2" input="speech"', "12", None),
    ],
)
def test_gather(attributes: str, keys: str, expected: str | None) -> None:
    body = f'<Gather action="/next" {attributes}><Pause length="1"/></Gather><Hangup/>'
    bench = _document(body, *([Dtmf(keys, At(100))] if keys else []))
    bench.run(20_000)

    assert [form.get("Digits") for _, form in bench.fetched[1:]] == ([] if expected is None else [expected])
    assert bench.machine.end is EndReason.SERVICE_HUNG_UP


def test_gather_takes_the_scripts_words_for_speech() -> None:
    bench = _document(
        '<Gather action="/next" input="speech"><Say>Who?</Say></Gather>',
        Say(tone(300), "Ana", AfterReply(200)),
    )
    bench.run(20_000)

    assert [form.get("SpeechResult") for _, form in bench.fetched[1:]] == ["Ana"]


@pytest.mark.parametrize("status", ["busy", "no-answer", "failed", "canceled", "completed"])
def test_b061_a_dial_ends_as_told(status: str) -> None:
    dial = DialOutcome(status, ring_ms=400, talk_ms=2_000)
    bench = _document('<Dial action="/next">+15550100009</Dial>', dial=dial)
    bench.run(20_000)

    form = bench.fetched[1][1]
    assert form["DialCallStatus"] == status
    assert ("DialCallDuration" in form) == (status == "completed")
    assert bench.now_ms == (2_400 if status == "completed" else 400)
    assert [event.text for event in bench.record().of(EventKind.VERB)] == ["Dial +15550100009", "Hangup"]


def test_a_dial_without_action_goes_on() -> None:
    bench = _document("<Dial>+15550100009</Dial><Redirect>/next</Redirect>")
    bench.run(20_000)

    assert [url for url, _ in bench.fetched] == [f"{BASE}/twilio/voice", f"{BASE}/next"]


def test_b070_voicemail_ends_with_silence_and_is_told_once() -> None:
    body = '<Record action="/next" timeout="2" recordingStatusCallback="/rec"/>'
    bench = _document(body, Say(tone(1_500), "call me", At(520)))
    bench.run(20_000)

    form = bench.fetched[1][1]
    assert form["RecordingSid"].startswith("RE")
    assert form["RecordingDuration"] == "4"
    told = [form["RecordingStatus"] for url, form in bench.notified if url.endswith("/rec")]
    assert told == ["completed"]


def test_hanging_up_leaves_the_message() -> None:
    bench = _document('<Record action="/next"/>', Say(tone(500), "call me", Now()), HangUp(At(1_000)))
    bench.run(20_000)

    assert [(url, form.get("Digits")) for url, form in bench.notified] == [
        (f"{BASE}/next", "hangup"),
        (f"{BASE}/twilio/status", None),
    ]


def test_an_empty_message_is_thrown_away() -> None:
    bench = _document('<Record action="/next" timeout="2"/><Hangup/>')
    bench.run(20_000)

    assert len(bench.fetched) == 1
    assert bench.machine.end is EndReason.SERVICE_HUNG_UP


@pytest.mark.parametrize(("reason", "status"), [("busy", "busy"), ("rejected", "no-answer")])
def test_a_rejected_call_is_never_answered(reason: str, status: str) -> None:
    bench = _document(f'<Reject reason="{reason}"/>')

    assert bench.machine.end is EndReason.REJECTED
    assert [form["CallStatus"] for _, form in bench.notified] == [status]
    assert bench.record().of(EventKind.ANSWERED) == ()


# -- the webhooks --------------------------------------------------------------------------------


def test_the_first_webhook_says_who_calls() -> None:
    bench = _bench()
    url, form = bench.fetched[0]

    assert url == f"{BASE}/twilio/voice"
    assert form["From"] == "+15550100001"
    assert form["To"] == "+15550100002"
    assert form["CallStatus"] == "ringing"
    assert len(form["CallSid"]) == 34
    assert "StirVerstat" not in form


def test_a_webhook_that_fails_ends_the_call() -> None:
    bench = Bench({})

    assert bench.machine.end is EndReason.FAILED
    assert bench.record().violations == ("11200: the webhook failed: 404",)


def test_a_redirect_loop_ends() -> None:
    bench = Bench({"/twilio/voice": ["<Response><Redirect/></Response>"]})

    assert bench.machine.end is EndReason.FAILED
    assert "within a second" in bench.record().violations[0]


def test_pausing_and_asking_again_is_no_loop() -> None:
    bench = Bench({"/twilio/voice": ["<Response><Pause length='1'/><Redirect/></Response>"]})
    bench.run(60_000)

    assert bench.machine.end is None
    assert bench.machine.board.violations == []


def test_the_two_sides_of_the_record_are_of_one_length() -> None:
    def answer(bench: Bench, message: Json) -> None:
        if message["event"] == "start":
            bench.say(tone(300))

    bench = _bench(HangUp(At(730)))
    bench.on_message = answer
    bench.run(2_000)
    record = bench.record()

    assert len(record.said_ulaw) == len(record.heard_ulaw)
    assert setup(CallScript()).voice_url.startswith(BASE)
    assert record.events == tuple(sorted(record.events, key=lambda event: event.at_ms))
