"""``python -m pmt`` is the command ``pmt``."""

import os
import signal
import sys


def run() -> int:
    """Run the command; Ctrl-C while it is imported ends it as later.

    It raises no KeyboardInterrupt then, which modules in C turn into errors of their own.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from pmt.cli import main

    signal.signal(signal.SIGINT, handler)
    return main()


def _end(*_: object) -> None:
    os.write(2, b"pmt: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(run())
