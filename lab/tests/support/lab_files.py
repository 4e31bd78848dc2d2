"""``pmt-lab`` as a process of its own, and the lab's golden texts."""

from functools import partial
from pathlib import Path

import cli_files

program = partial(cli_files.program, module="pmt_lab")
check_golden = partial(cli_files.check_golden, folder=Path(__file__).parents[1] / "golden")
