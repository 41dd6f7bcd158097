"""`python -m ivr.child MODULE ARGS…`: runs a module that ends when its parent does, however the parent ends.

The parent holds the other end of stdin; when it is gone, even by kill -9, stdin ends.
"""

import os
import runpy
import signal
import sys
import threading


def _watch_parent() -> None:
    while os.read(0, 4096):  # nothing is ever written
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run the module named first, with the rest as its arguments."""
    threading.Thread(target=_watch_parent, daemon=True, name="parent-watch").start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
