"""Programs that building firmware takes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

__all__ = ["make_environment", "need_programs"]

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


def make_environment() -> Mapping[str, str]:
    """Return the environment without what a make around this program has told its own children."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
