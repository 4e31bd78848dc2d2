"""Version, commit and date, for files that are kept with the code."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path
from typing import Any

from pmt import _core

__all__ = ["origin"]


def origin() -> dict[str, Any]:
    """Return ``pmt``, the version, ``commit``, None outside of a checkout, and ``date``, in UTC."""
    return {
        "pmt": _core.__version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def _commit() -> str | None:
    """Return the commit of the checkout that holds the package; None outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
