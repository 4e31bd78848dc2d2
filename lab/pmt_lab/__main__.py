"""``python -m pmt_lab`` is ``pmt-lab``."""

import sys

from pmt_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
