"""One media stream as the telephone company runs it, without its socket.

Pure. What Twilio does is in its documents; what is marked *(inferred)* is not.
"""

import ipaddress
from collections.abc import Callable
from enum import Enum, auto
from urllib.parse import urlsplit

from ivr.phone import messages
from ivr.phone.board import Board, CloseStream, Form, Goto, Next, Notify, OpenStream, Outcome, SendText
from ivr.phone.line import FRAME_MS
from ivr.phone.mouth import Mouthful
from ivr.phone.network import Network, Packet, Uplink
from ivr.phone.record import EventKind
from ivr.phone.twiml import ConnectStream


class _State(Enum):
    OPENING = auto()
    OPEN = auto()
    OVER = auto()


def is_loopback(host: str) -> bool:
    """Whether a URL's host is this machine: the only place where `ws://` may be used."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class StreamLeg:
    """A stream from its `<Connect>` to its end. It plays by the call's queue; what is unheard is lost."""

    def __init__(
        self,
        board: Board,
        verb: ConnectStream,
        network: Network,
        *,
        serial: int,
        stream_sid: str,
        common_form: Callable[[], Form],
        resolve: Callable[[str], str],
    ) -> None:
        self._board = board
        self._verb = verb
        self._network = network
        self._uplink = Uplink(network)
        self.serial = serial
        self.stream_sid = stream_sid
        self._common_form = common_form
        self._resolve = resolve
        self._state = _State.OPENING
        self._sequence = 0
        self._chunk = 0
        self._outcome: Outcome | None = None

    # -- the verb's life -------------------------------------------------------------------------

    def begin(self) -> None:
        parts = urlsplit(self._resolve(self._verb.url))
        if parts.query or parts.fragment:
            self._board.violation("31920: the Stream's url has a query, which is dropped")
        secure = parts.scheme == "wss" or (parts.scheme == "ws" and is_loopback(parts.hostname or ""))
        if not secure or not parts.hostname:
            self._board.violation("11100: the Stream's url is not wss:// (ws:// is for loopback alone)")
            self._over("refused: not a wss:// url", "stream-error")
            return
        url = parts._replace(query="", fragment="").geturl()
        self._board.emit(OpenStream(self.serial, url))

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        if self._state is _State.OPEN:
            now_ms = self._board.now_ms
            self._uplink.offer(now_ms // FRAME_MS, mouthful.ulaw, mouthful.digit, now_ms)
            for packet in self._uplink.due(now_ms):
                self._forward(packet)
        return self._outcome

    def played(self, marks: tuple[str, ...]) -> None:
        """These marks were reached."""
        for name in marks:
            self._echo(name, EventKind.MARK)

    def cut(self, *, hang_up: bool) -> None:
        """The caller hung up, or the call was given other TwiML: the service is told `stop`."""
        if self._state is _State.OVER:
            return
        if self._state is _State.OPEN:
            body = messages.StopBody(account_sid=self._board.account_sid, call_sid=self._board.call_sid)
            sequence = self._next_sequence()
            self._send(messages.Stop(sequence_number=sequence, stream_sid=self.stream_sid, stop=body))
        self._board.emit(CloseStream(self.serial))
        self._over("caller hung up" if hang_up else "other TwiML", "stream-stopped")

    def drop(self) -> None:
        """The line vanishes: nobody is told anything."""
        self._board.emit(CloseStream(self.serial, reset=True))
        self._state = _State.OVER

    def break_off(self) -> None:
        """The socket breaks; the call goes on after `<Connect>` *(inferred)*."""
        if self._state is not _State.OVER:
            self._board.emit(CloseStream(self.serial, reset=True))
            self._over("broken by the script", "stream-error")

    # -- what the socket says --------------------------------------------------------------------

    def opened(self) -> None:
        if self._state is not _State.OPENING:
            return
        self._state = _State.OPEN
        self._board.tell(EventKind.STREAM_STARTED, self.stream_sid)
        self._send(messages.Connected())
        body = messages.StartBody(
            account_sid=self._board.account_sid,
            stream_sid=self.stream_sid,
            call_sid=self._board.call_sid,
            custom_parameters=dict(self._verb.parameters),
        )
        sequence = self._next_sequence()
        self._send(messages.Start(sequence_number=sequence, stream_sid=self.stream_sid, start=body))
        self._call_back("stream-started")

    def refused(self, reason: str) -> None:
        """The handshake failed."""
        if self._state is _State.OPENING:
            self._board.violation(f"31920: the stream was refused: {reason}")
            self._over("refused", "stream-error")

    def closed(self, code: int) -> None:
        """The service closed the socket (1006: it broke). What follows `<Connect>` runs either way."""
        if self._state is not _State.OPEN:
            return
        orderly = code in {1000, 1001, 1005, 1012}
        self._over(f"closed by the service: {code}", "stream-stopped" if orderly else "stream-error")

    def received(self, data: str | bytes) -> None:
        """A message of the service."""
        if self._state is not _State.OPEN:
            return
        match messages.decode(data, self.stream_sid):
            case messages.Unusable(reason, code):
                self._board.violation(f"{code}: {reason}")
            case messages.PlayAudio(media=media):
                if not self._board.playback.push(media.payload):
                    self._board.violation("31931: more than ten minutes of audio queued")
            case messages.SetMark(mark=mark):
                self._board.playback.mark(mark.name)
            case messages.Clear():
                self._clear()

    # -- the parts -------------------------------------------------------------------------------

    def _clear(self) -> None:
        marks, dropped_ms = self._board.playback.clear()
        self._board.tell(EventKind.CLEAR, value=dropped_ms)
        for name in marks:
            self._echo(name, EventKind.MARK_CLEARED)

    def _echo(self, name: str, kind: EventKind) -> None:
        if self._state is not _State.OPEN:
            return
        self._board.tell(kind, name)
        sequence = self._next_sequence()
        mark = messages.MarkBody(name)
        self._send(messages.Mark(sequence_number=sequence, stream_sid=self.stream_sid, mark=mark))

    def _forward(self, packet: Packet) -> None:
        if not packet.lost:
            self._send_media(packet)
        elif self._network.numbered_gaps:
            self._chunk += 1
            self._sequence += 1
        if packet.digit:
            # Key presses are sent several times over (RFC 4733), so one lost packet does not lose them.
            body = messages.DtmfBody(digit=packet.digit)
            sequence = self._next_sequence()
            self._send(messages.Dtmf(sequence_number=sequence, stream_sid=self.stream_sid, dtmf=body))

    def _send_media(self, packet: Packet) -> None:
        self._chunk += 1
        body = messages.MediaBody(
            chunk=str(self._chunk),
            timestamp=str(self._uplink.timestamp_ms(packet)),
            payload=packet.ulaw,
        )
        sequence = self._next_sequence()
        self._send(messages.Media(sequence_number=sequence, stream_sid=self.stream_sid, media=body))

    def _send(self, message: messages.Message) -> None:
        self._board.emit(SendText(self.serial, messages.encode(message)))

    def _next_sequence(self) -> str:
        self._sequence += 1
        return str(self._sequence)

    def _over(self, why: str, status_event: str) -> None:
        self._state = _State.OVER
        _, unheard_ms = self._board.playback.clear()
        self._board.tell(EventKind.STREAM_ENDED, why, value=unheard_ms)
        self._call_back(status_event)
        self._outcome = Goto(self._verb.action) if self._verb.action else Next()

    def _call_back(self, event: str) -> None:
        if self._verb.status_callback:
            form: Form = (
                ("StreamSid", self.stream_sid),
                ("StreamName", self._verb.name or self.stream_sid),
                ("StreamEvent", event),
            )
            if event == "stream-error":
                form = (*form, ("StreamError", "31921"))
            url = self._resolve(self._verb.status_callback)
            self._board.emit(Notify(url, (*self._common_form(), *form)))
