"""Does a server answer out of band? Asked once: no server says so, and every reply of ours depends on it."""

from ivr.adapters.openai_socket import RealtimeSocket
from ivr.errors import ModelUnavailable, ModelUnsuitable
from ivr.wire.realtime_in import ErrorEvent, Response, ResponseCreated
from ivr.wire.realtime_out import PROBE_REPLY_ID, encode_cancel, encode_probe, reply_event_id


class OutOfBandProbe:
    """Asks for a few text tokens with `conversation: "none"` and our own `input`, and cancels at once.

    Costs about twenty text tokens and one round trip, in the first session of a process with a server.
    Only acceptance is remembered: a server that was refused may have been replaced by the next attempt.
    """

    def __init__(self) -> None:
        self._accepted = False

    async def check(self, socket: RealtimeSocket, shown: str) -> None:
        """Probe over a session whose settings are confirmed, unless this server has passed before.

        Raises: `ModelUnsuitable` naming the server and what it lacks; `ModelUnavailable` for a passing fault;
        `SocketClosed`.
        """
        if self._accepted:
            return
        await socket.send(encode_probe())
        response = await self._answer(socket, shown)
        await socket.send(encode_cancel(response.id))
        if response.reply_id != PROBE_REPLY_ID:
            raise ModelUnsuitable(f"{shown}: replies do not carry our metadata, so they cannot be told apart")
        if response.conversation_id is not None:
            raise ModelUnsuitable(
                f"{shown}: replies cannot be kept out of its conversation (out-of-band input)"
            )
        self._accepted = True

    async def _answer(self, socket: RealtimeSocket, shown: str) -> Response:
        while True:
            event = await socket.receive()
            if isinstance(event, ResponseCreated):
                return event.response
            if isinstance(event, ErrorEvent) and event.error.event_id in (
                None,
                reply_event_id(PROBE_REPLY_ID),
            ):
                fault = event.error.name
                if event.error.passing:
                    raise ModelUnavailable(f"{shown}: {fault}")
                raise ModelUnsuitable(f"{shown}: no out-of-band replies with their own input ({fault})")
