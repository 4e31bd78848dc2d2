"""Kill pmt while it writes, fill its disk, and start it several times at once.

    PYTHONPATH=tests:tests/support python -m faults --minutes 10

Faults are drawn at random. A finding is printed with its seed; `--job`, `--check` and `--seed`
show it again. Linux and gcc are needed.
"""

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path


def main() -> int:
    """Run the checks in turn until the time is over; return how many found something."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, help="go on for so long")
    parser.add_argument(
        "--rounds", type=int, default=1, help="seeds of each check, without --minutes"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--job", help="only this one")
    parser.add_argument("--check", help="only this one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        if "LD_PRELOAD" not in os.environ:
            return _restart(folder)
        return _run(folder, options)


def _restart(folder: Path) -> int:
    """Run the same in a process whose disks can fail."""
    from faults.failing_disk import build

    environment = {**os.environ, "LD_PRELOAD": str(build(folder)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "faults", *sys.argv[1:]]
    return os.spawnve(os.P_WAIT, sys.executable, command, environment)


def _run(folder: Path, options: argparse.Namespace) -> int:
    from faults.checks import CHECKS, Bench
    from faults.jobs import jobs

    end = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    checks = [name for name in CHECKS if options.check in (None, name)]
    wanted = [job for job in jobs(folder) if options.job in (None, job.name)]
    benches = [Bench(job, folder / "disk") for job in wanted]
    done = findings = 0
    seed = options.seed
    while seed < options.seed + options.rounds if end is None else time.monotonic() < end:
        for bench in benches:
            for check in checks:
                done += 1
                try:
                    CHECKS[check](bench, random.Random(seed))
                except AssertionError as found:
                    findings += 1
                    where = f"--job {bench.job.name!r} --check {check} --seed {seed}"
                    print(f"{where}: {found or traceback.format_exc()}", flush=True)
        seed += 1
    print(f"{done} faults in {len(benches)} jobs, {findings} findings")
    return findings > 0


if __name__ == "__main__":
    sys.exit(main())
