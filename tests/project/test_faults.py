"""Everything that writes, killed, on a full disk and side by side: a round of `make faults`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.failing_disk import build
from required import need, need_tools

import pmt

TESTS = Path(__file__).parents[1]
CARELESS = """
import random, sys
from pathlib import Path
from faults.checks import CHECKS, Bench
from faults.jobs import Job

def write(disk, text=b"new"):
    (disk / "figures").write_bytes(text * 2)
    return 0

bench = Bench(Job("careless", write, lambda disk: write(disk, b"old")), Path(sys.argv[1]))
CHECKS[sys.argv[2]](bench, random.Random(int(sys.argv[3])))
"""


def python(*arguments: object, library: Path | None = None) -> subprocess.CompletedProcess[str]:
    need(sys.platform == "linux", "the failing disk needs Linux")
    need_tools("gcc", packages="gcc")
    paths = [str(Path(pmt.__file__).parents[1]), str(TESTS), str(TESTS / "support")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    environment.pop("PMT_TRACEBACK", None)
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_pmt_writes_is_whole_after_any_fault():
    done = python("-m", "faults", "--seed", 0)
    assert (done.stdout, done.returncode) == ("39 faults in 13 jobs, 0 findings\n", 0), done.stderr


@pytest.mark.parametrize(
    ("check", "found"), [("killed", "half of figures"), ("full", "exit status 71")]
)
def test_a_careless_writer_is_found(tmp_path, check, found):
    library = build(tmp_path)
    errors = [
        python("-c", CARELESS, tmp_path / "disk", check, seed, library=library).stderr
        for seed in range(4)
    ]
    assert any(found in error for error in errors), errors
