"""Where a command's words and figures go."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.printable import printable
from pmt.cli.streams import put

__all__ = ["Output"]


class Output:
    """Text for people and JSON for programs.

    Parameters
    ----------
    json_path : str or None
        File for the JSON; ``"-"`` is standard output, and the text then goes to standard error.

    Raises
    ------
    FileNotFoundError
        If the file's folder does not exist; found out before the work, not after it.
    """

    def __init__(self, json_path: str | None) -> None:
        self.json_path = json_path
        self.stream = sys.stderr if json_path == "-" else sys.stdout
        if json_path not in (None, "-") and not Path(str(json_path)).absolute().parent.is_dir():
            raise FileNotFoundError(f"--json {json_path}: its folder does not exist; create it")

    def text(self, text: str) -> None:
        """Print text at once, so that a log can be followed; control characters are escaped."""
        put(printable(text, keep="\n\t") + "\n", self.stream)

    def figures(self, figures: dict[str, Any]) -> None:
        """Write the figures as JSON, if they were asked for."""
        if self.json_path is None:
            return
        text = json.dumps(figures, indent=2) + "\n"
        if self.json_path == "-":
            put(text, sys.stdout)
        else:
            atomic_file.write_text(self.json_path, text)
