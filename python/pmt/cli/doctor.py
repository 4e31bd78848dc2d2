"""``pmt doctor``: this installation, for a report of a problem."""

import argparse
import platform
import re
import shutil
import sys
from importlib import metadata

import numpy as np

from pmt import _core
from pmt._util.text import table
from pmt.cli.output import Output
from pmt.firmware.board.memory import PACKAGES
from pmt.model.loading import list_models, load

USAGE = "pmt doctor [--json PATH]"
SUMMARY = "versions, kernels, optional packages and programs of this installation"
DESCRIPTION = """\
Show what pmt finds here: versions, the kernels for this processor, the packages of each extra, and
the programs that firmware is built and emulated with; and load the bundled models. What is missing
stands with its remedy; only a bundled model that does not load is an error."""

_DISTRIBUTION = "poor-mans-training"
# For who develops pmt itself.
_OWN = {"dev", "docs", "fuzz", "notebook", "test", "wheel"}
_REQUIREMENT = re.compile(r'^([\w.-]+).*extra == "([\w-]+)"')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    versions = {
        "pmt": _core.__version__,
        "Python": f"{platform.python_version()} ({sys.executable})",
        "NumPy": np.__version__,
        "system": platform.platform(),
        "kernels": f"{_core.kernels()}, of {', '.join(_core.available_kernels())}",
    }
    extras = _extras()
    programs = {name: shutil.which(name) for name in PACKAGES}
    models = {name: _loads(name) for name in list_models()}
    rows = [*versions.items()]
    rows += [(f"extra {name}", _extra_text(name, found)) for name, found in extras.items()]
    rows += [
        (name, path or f"missing: apt-get install {PACKAGES[name]}")
        for name, path in programs.items()
    ]
    rows += [(name, problem or "loads") for name, problem in models.items()]
    output.text(table(["part", "found"], rows, left=["part", "found"]))
    output.figures({"versions": versions, "extras": extras, "programs": programs, "models": models})
    return 1 if any(models.values()) else 0


def _extras() -> dict[str, dict[str, str | None]]:
    """Return the version of each package by the extra that it belongs to; None: it is missing."""
    found: dict[str, dict[str, str | None]] = {}
    others = metadata.packages_distributions()
    for requirement in metadata.requires(_DISTRIBUTION) or ():
        match = _REQUIREMENT.match(requirement)
        if match and match[2] not in _OWN:
            # Another may bring the same module, as tensorflow-cpu does.
            versions = map(_version, (match[1], *others.get(match[1], ())))
            found.setdefault(match[2], {})[match[1]] = next(filter(None, versions), None)
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _extra_text(name: str, packages: dict[str, str | None]) -> str:
    missing = [package for package, version in packages.items() if version is None]
    if missing:
        return f'missing {", ".join(missing)}: pip install "{_DISTRIBUTION}[{name}]"'
    return ", ".join(f"{package} {version}" for package, version in packages.items())


def _loads(name: str) -> str:
    """Return why a bundled model does not load; empty where it does."""
    try:
        load(name)
    except (OSError, ValueError) as error:
        return str(error)
    return ""
