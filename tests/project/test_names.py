"""Names are there after ``import pmt``: those that a page prints, and the public ones alone."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pmt
from pages import own_pages

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *own_pages(),
    *sorted((ROOT / "lab" / "pages").glob("*.md")),
]
_NAME = re.compile(r"(?<![\w./-])pmt(?:\.[A-Za-z_]\w*)+(?![\w/-]|\.\w)")
_FILES = {"pmt.lock"}
# Each in a process of its own, where no name before it has imported its module.
_TRIED = """
import multiprocessing, operator, sys
import numpy
import pmt

def find(name):
    operator.attrgetter(name.removeprefix("pmt."))(pmt)

with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
    pool.map(find, sys.argv[1:], chunksize=1)
"""


@pytest.fixture(scope="module")
def printed():
    names = {name for page in PAGES for name in _NAME.findall(page.read_text(encoding="utf-8"))}
    assert len(names) > 80
    return sorted(names - _FILES)


def test_pages_that_a_build_of_the_site_left_are_not_read(tmp_path):
    shutil.copy(ROOT / ".gitignore", tmp_path)
    for name in ("index.md", "guides/a.md", "lab/a.md", "notebooks/a.md", "reference/api/a/b.md"):
        page = tmp_path / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.touch()
    docs = tmp_path / "docs"
    assert own_pages(docs) == [docs / "guides" / "a.md", docs / "index.md"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_every_printed_name_is_there_after_import_pmt(printed):
    command = [sys.executable, "-c", _TRIED, *printed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_type_checkers_find_every_printed_name(printed, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(["import pmt", *printed]))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n"


def test_every_public_name_can_be_imported_and_a_wrong_one_is_told():
    for name in pmt.__all__:
        assert getattr(pmt, name) is not None
    assert dir(pmt) == sorted(pmt.__all__)
    assert {"Model", "ZOTrainer", "load", "datasets", "corruptions", "methods"} <= set(dir(pmt))
    assert not {"_core", "annotations", "net", "formats"} & set(dir(pmt))
    with pytest.raises(AttributeError, match=r"module 'pmt' has no attribute 'quantise'"):
        _ = pmt.quantise
    for name in ("a.b", "datasets.array_files", ".datasets", "a b", ""):
        with pytest.raises(AttributeError, match=f"^module 'pmt' has no attribute '{name}'$"):
            getattr(pmt, name)
    assert not hasattr(pmt.train, "run.folder")


def test_import_pmt_loads_nothing_before_a_name_is_used():
    program = "import pmt, sys; print(sorted(m for m in sys.modules if m[:3] in ('pmt', 'num')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "['pmt', 'pmt._util', 'pmt._util.lazy']\n"


@pytest.mark.parametrize("module", ["backprop", "callbacks", "corruptions", "datasets", "methods"])
def test_public_modules_are_imported_by_the_names_that_users_write(module):
    imported = importlib.import_module(f"pmt.{module}")
    assert imported is getattr(pmt, module)


def test_threads_that_use_a_name_first_import_one_after_another():
    program = """
import threading, time
import pmt
from pmt._util import lazy

imported, here, met = lazy.importlib.import_module, set(), []

def slow(name):
    mine = threading.get_ident()
    met.append(bool(here - {mine}))
    here.add(mine)
    time.sleep(0.01)
    found = imported(name)
    here.discard(mine)
    return found

lazy.importlib.import_module = slow
names = ("load", "datasets", "methods", "protocol", "Learner", "export", "train", "callbacks")
threads = [threading.Thread(target=getattr, args=(pmt, name)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(met) >= 8, any(met))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True False\n", "")


def test_a_module_that_is_being_imported_waits_for_no_other_thread(tmp_path):
    (tmp_path / "user_of_pmt.py").write_text("import pmt\nfound = pmt.errors\n")
    program = """
import threading
from pmt._util import lazy

def imports():
    import user_of_pmt

thread = threading.Thread(target=imports, daemon=True)
with lazy._importing:  # of a thread that may wait for this very module
    thread.start()
    thread.join(60)
    print(thread.is_alive())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_does_not_wait_for_a_thread_of_its_parent():
    program = """
import os, signal, threading
import pmt
from pmt._util import lazy

held, done = threading.Event(), threading.Event()

def hold():
    with lazy._importing:
        held.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    pmt.PRESETS
    os._exit(0)
print(os.waitpid(child, 0)[1])
done.set()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
