"""callthread: a telephone service that never loses the thread."""

from importlib.metadata import version

__version__ = version("callthread")
