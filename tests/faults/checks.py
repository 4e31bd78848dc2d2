"""Three promises of everything that writes: after a kill, on a full disk, and side by side."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.failing_disk import FULL, KILL, KILLED, NO_FAULT, Ended, Fault, Process, run
from faults.jobs import Job, contents

PERCENTS = (0, 50, 100)
MOST_KILLS = 4
PROCESSES = 3


class Bench:
    """A job's disk, and the result of the job where nothing fails.

    Parameters
    ----------
    job : Job
        What writes.
    disk : pathlib.Path
        Folder that is made anew for every check.
    """

    def __init__(self, job: Job, disk: Path) -> None:
        self.job, self.disk = job, disk
        self._fresh()
        ended = run(disk, lambda: job.run(disk))
        assert ended.status == 0, f"{job.name} fails: {ended.errors}"
        self.result = job.result(disk)
        self.whole = contents(disk)
        self.changes = ended.changes
        assert self.changes > 0, f"{job.name} writes nothing"

    def _fresh(self, *, replaces: bool = False) -> dict[str, bytes]:
        shutil.rmtree(self.disk, ignore_errors=True)
        self.disk.mkdir()
        if replaces and self.job.earlier is not None:
            job = self.job.earlier
            ended = run(self.disk, lambda: job(self.disk))
            assert ended.status == 0, ended.errors
        return contents(self.disk)

    def _run(self, fault: Fault = NO_FAULT) -> Ended:
        return run(self.disk, lambda: self.job.run(self.disk), fault)

    def _check_result(self, ended: Ended) -> None:
        assert ended.status == 0, f"it does not go on: {ended.errors}"
        _check_equal(self.job.result(self.disk), self.result)

    def _check_unharmed(self, earlier: dict[str, bytes]) -> None:
        """Check that output which is replaced as a whole is the earlier one or the new one."""
        found = contents(self.disk)
        if self.job.earlier is not None and found not in (earlier, self.whole):
            _check_equal(found, earlier)

    def killed(self, draw: random.Random) -> None:
        """Kill the job some times, at random, and let it go on: the result is the same."""
        earlier = self._fresh(replaces=draw.random() < 0.5)
        for _ in range(draw.randint(1, MOST_KILLS)):
            ended = self._run(Fault(KILL, draw.randrange(self.changes), draw.choice(PERCENTS)))
            assert ended.status in (0, KILLED), ended.errors
            visible = {n: c for n, c in contents(self.disk).items() if not n.startswith(".")}
            for name, content in visible.items() if self.job.earlier else ():
                assert content in (earlier.get(name), self.whole.get(name)), f"half of {name}"
        self._check_result(self._run())

    def full(self, draw: random.Random) -> None:
        """Fill the disk at a change at random: one error, nothing half-written, then it goes on."""
        earlier = self._fresh(replaces=draw.random() < 0.5)
        ended = self._run(Fault(FULL, draw.randrange(self.changes), draw.choice(PERCENTS)))
        if ended.status != 0:
            self._check_error(ended)
            self._check_unharmed(earlier)
            left = [p.name for p in self.disk.rglob("*") if p.suffix in (".part", ".lock", ".old")]
            assert left in ([], ["pmt.lock"]), f"left over: {left}"
        self._check_result(self._run())

    def _check_error(self, ended: Ended) -> None:
        errors = [line for line in ended.errors.splitlines() if "error:" in line]
        assert ended.status == 2, f"exit status {ended.status}: {ended.errors}"
        assert len(errors) == 1, ended.errors
        assert "Traceback" not in ended.errors, ended.errors
        for words in ("No space left on device", "free some space", str(self.disk)):
            assert words in errors[0], f"the error does not say {words!r}: {errors[0]}"

    def together(self, draw: random.Random) -> None:
        """Start the job in several processes at once, one of which may be killed."""
        self._fresh(replaces=draw.random() < 0.5)
        faults = [NO_FAULT] * (PROCESSES - 1)
        faults.append(Fault(KILL, draw.randrange(2 * self.changes), draw.choice(PERCENTS)))
        processes = [Process(self.disk, lambda: self.job.run(self.disk), f) for f in faults]
        for process in processes:
            process.start()
        ended = [process.end() for process in processes]
        for one in ended:
            if one.status == 2 and self.job.one_at_a_time:
                assert "is in use by" in one.errors, one.errors
            else:
                assert one.status in (0, KILLED), one.errors
        assert any(one.status != 2 for one in ended), ended[0].errors
        self._check_result(self._run())


CHECKS: dict[str, Callable[[Bench, random.Random], None]] = {
    "killed": Bench.killed,
    "full": Bench.full,
    "together": Bench.together,
}


def _check_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    names = sorted(found.keys() | expected.keys())
    different = [name for name in names if found.get(name) != expected.get(name)]
    assert not different, f"differ: {different}"
