"""The source distribution builds, and its wheel works with NumPy and filelock alone."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
import yaml

from pmt import __version__

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
ROOT = Path(__file__).parents[2]
# Not what a developer's shell adds to the search path: it would hide what the wheel lacks.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
# CI prints it: the wheel's installation, and its use with Python alone.
TRANSCRIPT = ROOT / "build" / "transcript.txt"


def run(*command: str | Path, cwd: Path, variables: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**ENVIRONMENT, **(variables or {})},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A folder with the sdist, and the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    TRANSCRIPT.parent.mkdir(exist_ok=True)
    TRANSCRIPT.write_text("")
    # The sdist is unpacked and compiled in the system's temporary folder; where ccache is there, it
    # knows the objects from the set-up, whose sources are the same.
    base = {"CCACHE_BASEDIR": tempfile.gettempdir()}
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    run(*build, cwd=ROOT, variables=base)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    (path,) = distributions.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def user_runs(program: Path, *arguments: str | Path, cwd: Path) -> str:
    """Run a program that finds only its environment's, no compiler, and write what is printed."""
    printed = run(program, *arguments, cwd=cwd, variables={"PATH": str(program.parent)})
    shown = shlex.join([program.name, *map(str, arguments)])
    with TRANSCRIPT.open("a") as file:
        file.write(f"$ {shown}\n{printed}\n")
    return printed


def new_environment(folder: Path, *packages: str | Path) -> Path:
    """Return Python of a new environment in which only these and what they need are installed."""
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    # Hashes are compared where there are some; a wheel that was built here has none.
    pip = (Path(sys.executable), "-m", "pip", "--python", python, "install", "--no-require-hashes")
    user_runs(*pip, "--quiet", "-c", ROOT / "constraints.txt", *packages, cwd=folder)
    return python


@pytest.fixture(scope="module")
def clean_python(distributions, tmp_path_factory):
    """Python of a new environment in which only the wheel was installed."""
    (path,) = distributions.glob("*.whl")
    return new_environment(tmp_path_factory.mktemp("clean"), path)


def source_files(folder: str) -> set[str]:
    """Files below a source folder, relative to it, as Git would have them."""
    root = ROOT / folder
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }


def test_sdist_holds_sources_and_nothing_built(distributions):
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"} <= names
    assert {"cpp/core/train/trainer.cpp", "python/pmt/data/fashion_mnist_dscnn.pmt"} <= names
    tops = {name.partition("/")[0] for name in names}
    assert not tops & {"build", "dist", ".venv", "runs", "fw", ".git"}
    assert [name for name in names if name.endswith((".so", ".pyc"))] == []


def test_wheel_holds_one_binary_module_and_the_whole_package(wheel):
    names = wheel.namelist()
    binaries = [name for name in names if ".so" in name]
    assert len(binaries) == 1
    assert binaries[0].startswith("pmt/_core.")
    assert {f"pmt/{name}" for name in source_files("python/pmt")} <= set(names)
    assert "pmt/py.typed" in names


@pytest.mark.parametrize(
    ("source", "place"),
    [("cpp/core", "pmt/_native/core"), ("firmware_export", "pmt/_native/firmware_export")],
)
def test_wheel_holds_the_sources_of_the_firmware(wheel, source, place):
    held = {name.removeprefix(f"{place}/") for name in wheel.namelist() if name.startswith(place)}
    assert held == source_files(source)


def test_wheel_holds_the_cmake_package_of_the_core(wheel):
    held = {name for name in wheel.namelist() if name.startswith("pmt/_native/cmake/")}
    names = ("core_library.cmake", "pmtConfig.cmake", "pmtConfigVersion.cmake")
    assert held == {f"pmt/_native/cmake/{name}" for name in names}


def test_wheel_needs_two_packages(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = HeaderParser().parsestr(wheel.read(name).decode())
    needed = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    assert sorted(needed) == ["filelock>=4", "numpy>=1.24"]
    assert metadata["License-Expression"] == "MIT"


def test_package_works_without_extras(clean_python, tmp_path):
    listed = user_runs(clean_python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    packages = {line.partition("==")[0] for line in listed.splitlines() if "==" in line}
    assert packages - {"pip", "setuptools"} == {"numpy", "filelock", "poor-mans-training"}

    code = """
import pmt
model = pmt.load("fashion_mnist_dscnn")
data = pmt.datasets.bundled("train").take(50)
pmt.ZOTrainer(layers="head", epochs=1, queries=2).fit(model, data, out="run")
model.save("trained.pmt")
print(model.classes, pmt.__version__)
"""
    assert user_runs(clean_python, "-c", code, cwd=tmp_path) == "10 0.1.0\n"
    assert (tmp_path / "trained.pmt").is_file()


def test_demo_and_doctor_work_without_extras(clean_python, tmp_path):
    pmt = clean_python.parent / "pmt"
    printed = user_runs(pmt, "demo", "--out", "demo", cwd=tmp_path)
    assert re.search(r"^fog accuracy +23\.8% +72\.7%$", printed, re.MULTILINE)
    assert printed.endswith("\n\nthe run is in demo\n")
    assert "fashion_mnist_dscnn  loads" in user_runs(pmt, "doctor", cwd=tmp_path)


def test_the_ten_lines_and_the_tutorial_need_no_extras(clean_python, tmp_path):
    """What they print is compared by tests/cli/test_documents.py."""
    lines, tutorial = (
        (ROOT / page).read_text() for page in ("README.md", "docs/tutorials/first_model.md")
    )
    (program,) = re.findall(r"## Ten lines\n\n```python\n(.*?)```", lines, re.DOTALL)
    assert "with its head trained, the best" in user_runs(clean_python, "-c", program, cwd=tmp_path)
    commands = re.findall(r"^\$ pmt (.+)$", tutorial, re.MULTILINE)
    assert len(commands) == 9
    for command in commands:
        user_runs(clean_python.with_name("pmt"), *command.split(), cwd=tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", tutorial, re.DOTALL)
    assert "and it is Ankle boot\n" in user_runs(clean_python, "-c", program, cwd=tmp_path)


def test_files_for_indexes_name_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    assert citation["version"] == project["version"] == __version__
    assert citation["authors"] == project["authors"] == [{"name": "The pmt authors"}]
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert pythons == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    built = [f"cp{version.replace('.', '')}-*" for version in pythons]
    assert settings["tool"]["cibuildwheel"]["build"] == " ".join(built)
    for name in ("ci", "wheels"):
        workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
        assert {"name", "jobs", "permissions"} <= set(workflow)
    site = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    assert (ROOT / site["sphinx"]["configuration"]).is_file()


def test_an_index_shows_absolute_links(tmp_path):
    """A repository's address is known to who builds for an index, and to nobody else."""
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    url = "https://host.example/owner/repository"
    run(sys.executable, ROOT / "scripts/set_url.py", f"{url}/", tmp_path, cwd=tmp_path)
    readme = (tmp_path / "README.md").read_text()
    assert f"[tutorial]({url}/blob/HEAD/docs/tutorials/first_model.md)" in readme
    assert (
        f"![Accuracy over multiply-accumulates of training, with memory]({url}/raw/HEAD/" in readme
    )
    assert "([citation](#citation))" in readme
    targets = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(targets) > 40
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    project = (tmp_path / "pyproject.toml").read_text()
    assert f'\n[project.urls]\nRepository = "{url}"\nIssues = "{url}/issues"\n' in project
    with pytest.raises(AssertionError, match="URL=host: must be the repository's page"):
        run(sys.executable, ROOT / "scripts/set_url.py", "host", tmp_path, cwd=tmp_path)


def test_command_works_without_extras(clean_python, tmp_path):
    pmt = clean_python.with_name("pmt")
    assert user_runs(pmt, "--help", cwd=tmp_path).startswith("usage: pmt")
    assert "30,720" in user_runs(pmt, "info", "fashion_mnist_dscnn", cwd=tmp_path)
    export = ("export", "fashion_mnist_dscnn", "--target", "qemu-mps2-an500", "--out", "fw")
    user_runs(pmt, *export, "--data", "bundled", "--layers", "head", "--steps", "1", cwd=tmp_path)
    assert (tmp_path / "fw" / "Makefile").is_file()


def test_two_notebooks_run_from_the_wheel_alone(distributions, tmp_path):
    (path,) = distributions.glob("*.whl")
    python = new_environment(tmp_path, f"{path}[plot]", "nbclient", "ipykernel")
    names = ("01_first_steps", "11_own_loss_and_estimator")
    copies = [shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", tmp_path) for name in names]
    execute = python.with_name("jupyter-execute")
    user_runs(execute, "--output", "{notebook_name}_ran", *copies, cwd=tmp_path)
    first, second = ((tmp_path / f"{name}_ran.ipynb").read_text() for name in names)
    assert "kept epoch 1, the best on the 200 held-out images" in first
    assert '"image/png"' in second


def test_every_pin_has_hashes():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    pattern = r"[a-z0-9-]+==[a-z0-9.]+( ; [^#]+?)?( --hash=sha256:[0-9a-f]{64})+"
    assert [pin[:60] for pin in pins if not re.fullmatch(pattern, pin)] == []
    assert {"numpy", "torch", "pip"} <= {pin.partition("==")[0] for pin in pins}


def test_a_file_with_another_hash_is_refused(distributions, tmp_path):
    (path,) = distributions.glob("*.whl")
    other = tmp_path / "constraints.txt"
    other.write_text(f"poor-mans-training=={__version__} --hash=sha256:{'0' * 64}\n")
    pip = (sys.executable, "-m", "pip", "install", "--no-index", "--find-links", path.parent)
    where = ("--no-deps", "--target", tmp_path / "site", "-c", other)
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        run(*pip, *where, "poor-mans-training", cwd=tmp_path)
