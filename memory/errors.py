"""What memory raises on purpose. Driver errors end in the store; only these come out of it."""


class MemoryFault(Exception):
    """Everything this package raises on purpose."""


class StorageUnavailable(MemoryFault):
    """The database or the audio store cannot be reached now. Trying again may help."""


class StorageFault(MemoryFault):
    """The database refused a statement: not migrated, or a bug of ours. Trying again will not help."""


class UnknownCall(MemoryFault):
    """No call with this CallSid was ever opened."""


class CallOver(MemoryFault):
    """The call has ended; no stream can claim it any more."""


class StaleEpoch(MemoryFault):
    """A newer stream owns the call: what this one writes is refused."""

    def __init__(self, call_sid: str, epoch: int, current: int) -> None:
        super().__init__(f"call {call_sid}: epoch {epoch} is over, {current} is current")
        self.epoch = epoch
        self.current = current


class WrongDimension(MemoryFault):
    """The embedding model's vectors do not fit the column made for them."""

    def __init__(self, model: str, got: int, expected: int) -> None:
        super().__init__(
            f"embedding model {model!r} gives {got} numbers a vector, the database stores {expected}: "
            f"name a model with {expected}, or migrate the column"
        )
        self.model = model
        self.got = got
        self.expected = expected


class EncodingFailed(MemoryFault):
    """The embedding model took these texts and failed; the message is the fault's name, never a text."""


class EmbeddingNotReady(MemoryFault):
    """The embedding process is configured but gave no answer: the job is tried again later."""


class ClusterFault(MemoryFault):
    """The embedded PostgreSQL could not be made, started or stopped."""
