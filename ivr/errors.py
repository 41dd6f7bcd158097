"""One tree of errors. `Peer*` is the other side's fault, `InternalError` is ours, `ConfigError` the operator's."""


class CallthreadError(Exception):
    """Everything this project raises on purpose."""


class ConfigError(CallthreadError):
    """A setting is wrong. The text is one line: the variable, what is wrong, a right example."""

    def __init__(self, variable: str, fault: str, example: str) -> None:
        super().__init__(f"{variable}: {fault} (example: {example})")
        self.variable = variable
        self.fault = fault
        self.example = example


class InternalError(CallthreadError):
    """Our own bug: a state that the tables say cannot be."""


class PeerError(CallthreadError):
    """The other side broke the protocol or went away."""


class BadMessage(PeerError):
    """A message could not be read; it is counted and ignored, the connection stays."""


class ModelUnavailable(PeerError):
    """The speech model cannot be reached, or refused for now. Trying again may help."""


class ModelUnsuitable(PeerError):
    """The server at this address lacks something we need; trying again will not help."""


class SpeechUnavailable(PeerError):
    """The text-to-speech endpoint did not speak. The text is a word or two for logs.

    `is_refusal`: of this text or voice; others may well be spoken.
    """

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


class TelephonyError(PeerError):
    """Twilio's REST API refused or failed."""


class StorageUnavailable(PeerError):
    """The database or the audio store cannot be reached now."""


class CallTakenOver(CallthreadError):
    """A newer stream holds this call now; what the older one still writes is refused. Not a fault."""
