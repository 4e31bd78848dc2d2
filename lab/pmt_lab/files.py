"""Files that are whole or as they were, where kept figures come from, and words of messages."""

import datetime
import difflib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pmt


def write_text(path: str | Path, text: str) -> None:
    """Write a file, which is whole or as it was."""
    path = Path(os.path.realpath(path))
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(aside, mode)
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_json(path: str | Path, remedy: str) -> Any:
    """Read a JSON file; a ValueError names it where it is damaged."""
    try:
        return json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is not valid JSON ({error}); {remedy}") from None


def spread_json(value: Any, levels: int) -> str:
    """Return JSON whose first levels are spread over lines, so that versions can be compared."""
    members = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, dict | list) and any(isinstance(m, dict | list) for m in members)
    if levels == 0 or not nested:
        return json.dumps(value)
    inner = [spread_json(member, levels - 1).replace("\n", "\n ") for member in members]
    if isinstance(value, dict):
        inner = [f"{json.dumps(key)}: {text}" for key, text in zip(value, inner, strict=True)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n " + ",\n ".join(inner) + f"\n{last}"


def origin() -> dict[str, Any]:
    """Return ``pmt``, its version, ``commit``, None outside of a checkout, and ``date`` in UTC."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = None
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"pmt": pmt.__version__, "commit": commit, "date": date}


def counted(count: int, noun: str) -> str:
    """Return a number and its noun, in the singular where the number is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def described(error: BaseException) -> str:
    """Return an error as text, that of a file with its name."""
    if isinstance(error, MemoryError):
        return "not enough memory; use fewer --jobs or threads"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """Return the remedy for an unknown name: the nearest one that is known, or all of them."""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(given), names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; choose one of {', '.join(names)}"
