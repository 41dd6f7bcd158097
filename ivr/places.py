"""Where things that ship with the program lie, in a checkout and in an installed wheel."""

from pathlib import Path

import callflows

SHIPPED_FLOWS = Path(callflows.__file__).parent / "businesses"


def migrations() -> Path:
    """The alembic folder: inside `ivr` in a wheel, beside it in a checkout."""
    here = Path(__file__).parent
    shipped = here / "_alembic"
    return shipped if shipped.is_dir() else here.parent / "alembic"
