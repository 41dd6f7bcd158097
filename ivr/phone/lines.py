"""A stay in a line (`<Enqueue>`), as the telephone company has it: its figures, and how it ends. Pure."""

from collections import deque
from dataclasses import dataclass

from ivr.phone.board import Form, Goto, LineOutcome, Next, Outcome
from ivr.phone.line import FRAME_MS
from ivr.phone.mouth import Mouthful
from ivr.phone.twiml import Enqueue, Verb


@dataclass(frozen=True)
class Stay:
    """One caller's, since `since_ms`. `rest`: the verbs behind `<Enqueue>`."""

    verb: Enqueue
    outcome: LineOutcome
    rest: deque[Verb]
    queue_sid: str
    since_ms: int
    document_url: str
    """Of the document that `<Enqueue>` stood in: its URLs may be relative to it."""

    def form(self, now_ms: int) -> Form:
        """What the requests for what is heard meanwhile carry."""
        return (
            ("QueueSid", self.queue_sid),
            ("QueuePosition", str(self.outcome.position)),
            ("QueueTime", str(self._waited_s(now_ms))),
            ("CurrentQueueSize", str(self.outcome.position)),
            ("AvgQueueTime", "60"),
        )

    def is_taken(self, now_ms: int) -> bool:
        """Somebody takes the call out of the line now."""
        after_ms = self.outcome.taken_after_ms
        return after_ms is not None and now_ms - self.since_ms >= after_ms

    def ended(self, result: str, now_ms: int) -> Outcome:
        """Where it goes on."""
        if not self.verb.action:
            return Next()
        form = (("QueueResult", result), ("QueueTime", str(self._waited_s(now_ms))))
        return Goto(self.verb.action, "POST", (*form, ("QueueSid", self.queue_sid)))

    def _waited_s(self, now_ms: int) -> int:
        return (now_ms - self.since_ms) // 1_000


class Bridged:
    """The caller talks to who took the call; then `then`."""

    def __init__(self, talk_ms: int, then: Outcome) -> None:
        self._left_ms = talk_ms
        self._then = then

    def begin(self) -> None:
        """Nothing is played."""

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        self._left_ms -= FRAME_MS
        return self._then if self._left_ms <= 0 else None

    def cut(self, *, hang_up: bool) -> None:
        """The other leg ends with the call."""
