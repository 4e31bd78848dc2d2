"""``python -m pmt`` is the command ``pmt``."""

import sys


def run() -> int:
    """Run the command; Ctrl-C while it is imported ends it as later."""
    try:
        from pmt.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("pmt: interrupted\n")
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(run())
