"""Workers of pytest-xdist: which files come first, and that a test that measures runs alone."""

import json
import os
import shutil
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest
import workers

CONFTEST = """
import json, os, time
import pytest

pytest_plugins = ["workers"]

@pytest.fixture
def record(request):
    start = time.monotonic()
    time.sleep(0.05)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    with open("spans", "a") as file:
        file.write(json.dumps([request.node.nodeid, worker, start, time.monotonic()]) + "\\n")
"""
FILES = {
    "test_a_many.py": ["shared"] * 9,
    "test_b_some.py": ["shared", "alone", "alone", "shared"],
    "test_c_few.py": ["shared"] * 2,
    "test_d_some.py": ["shared"] * 4,
}


def spans(folder: Path, *options: str) -> list[tuple[str, str | None, float, float]]:
    """Run the files in an empty folder; return each test's name, worker, start and end."""
    shutil.copy(workers.__file__, folder)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = alone\n        shared\n")
    for name, marks in FILES.items():
        tests = [
            f"@pytest.mark.{mark}\ndef test_{mark}_{number}(record): pass\n"
            for number, mark in enumerate(marks)
        ]
        (folder / name).write_text("import pytest\n" + "".join(tests))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if "XDIST" not in key},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("19 passed in ")
    return [tuple(json.loads(line)) for line in (folder / "spans").read_text().splitlines()]


@pytest.fixture(scope="module")
def of_two_workers(tmp_path_factory):
    parallel = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
    return spans(tmp_path_factory.mktemp("two"), *parallel)


def test_nothing_runs_beside_a_test_that_is_marked_alone(of_two_workers):
    assert {worker for _, worker, _, _ in of_two_workers} == {"gw0", "gw1"}
    alone = [span for span in of_two_workers if "test_alone" in span[0]]
    assert len(alone) == 2
    for name, _, start, end in alone:
        others = [span for span in of_two_workers if span[0] != name]
        assert [span for span in others if span[2] < end and span[3] > start] == []
    # Nor between two of them: the worker goes on at once.
    between = (alone[0][3], alone[1][2])
    assert [span for span in of_two_workers if between[0] < span[2] < between[1]] == []


def test_tests_of_several_workers_run_together(of_two_workers):
    pairs = [
        (one, other)
        for one in of_two_workers
        for other in of_two_workers
        if one[1] < other[1] and one[2] < other[3] and other[2] < one[3]
    ]
    assert pairs


def test_files_of_few_tests_come_first_and_those_that_run_alone_last(of_two_workers):
    for worker in ("gw0", "gw1"):
        its = sorted((span for span in of_two_workers if span[1] == worker), key=itemgetter(2))
        marks = [FILES[name.split("::")[0]] for name, _, _, _ in its]
        order = [("alone" in of_file, len(of_file)) for of_file in marks]
        assert order == sorted(order)
    assert len({worker for name, worker, _, _ in of_two_workers if "many" in name}) == 1


def test_a_plain_run_keeps_the_order_of_files(tmp_path):
    names = [name.split("::")[0] for name, _, _, _ in spans(tmp_path)]
    assert list(dict.fromkeys(names)) == sorted(FILES)
