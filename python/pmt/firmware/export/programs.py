"""Programs that building firmware takes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["MAKE_SECONDS", "need_programs", "run_make"]

MAKE_SECONDS = 900

_PACKAGES = {
    "arm-none-eabi-g++": "gcc-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "make": "make",
}


def need_programs(purpose: str, *programs: str) -> None:
    """Check that programs are installed.

    Parameters
    ----------
    purpose : str
        What they are for, for the message: ``"instructions are counted"``.
    *programs : str
        Their names.

    Raises
    ------
    FileNotFoundError
        If one is missing; the message names Debian's package.
    """
    for program in programs:
        if shutil.which(program) is None:
            raise FileNotFoundError(
                f"{program} is not installed, and {purpose} with it; install it, on "
                f"Debian and Ubuntu with `apt-get install {_PACKAGES[program]}`"
            )


def run_make(folder: Path, goal: str, too_long: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, silently and with all processors.

    Parameters
    ----------
    folder : pathlib.Path
        Where the Makefile is.
    goal : str
        What to make.
    too_long : str
        The message where it takes longer than :data:`MAKE_SECONDS`.

    Returns
    -------
    subprocess.CompletedProcess
        Exit status, standard output and standard error.

    Raises
    ------
    TimeoutError
        If it takes too long.
    """
    # Without what a make around this program has told its own children.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    try:
        return subprocess.run(
            ["make", "-s", f"-j{os.cpu_count() or 1}", "-C", str(folder), goal],
            capture_output=True,
            text=True,
            timeout=MAKE_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(too_long) from error
