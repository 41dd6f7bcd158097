"""What is wrong with a flow file, where, and how to mend it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An error keeps the file from being used; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class FlowFault:
    """One fault. `line` and `column` count from 1; `hint` says how to mend it and may be empty."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}{hint}"


def in_order(faults: Iterable[FlowFault]) -> tuple[FlowFault, ...]:
    """The faults as a reader of the files meets them, without repeats."""
    return tuple(sorted(set(faults), key=lambda fault: (fault.file, fault.line, fault.column, fault.message)))


class FlowErrors(Exception):
    """Flow files that cannot be used. `faults` holds every error found, ordered by place."""

    def __init__(self, faults: Iterable[FlowFault]) -> None:
        self.faults = in_order(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))
