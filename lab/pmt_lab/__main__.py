"""``python -m pmt_lab`` is ``pmt-lab``."""

from __future__ import annotations

import sys

from pmt_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
