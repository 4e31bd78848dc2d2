"""``python -m pmt`` is the command ``pmt``."""

import sys

from pmt.cli import main

if __name__ == "__main__":
    sys.exit(main())
