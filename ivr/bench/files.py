"""What a bench writes beside its table, and the bar that shows how far it is."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ivr.errors import CallthreadError


@dataclass(frozen=True, slots=True)
class Files:
    """Where to write; `None`: not at all. Raises: `CallthreadError` for a plot that is no SVG."""

    csv: Path | None = None
    plot: Path | None = None
    json: Path | None = None

    def __post_init__(self) -> None:
        if self.plot is not None and self.plot.suffix.lower() != ".svg":
            raise CallthreadError(f"--plot {self.plot}: only SVG is written; name it *.svg")


def progress_bar() -> Progress:
    """On standard error, and gone when it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
