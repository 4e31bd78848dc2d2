"""The note of pmt in files of other formats: facts of a model that their operators do not hold."""

from collections.abc import Mapping
from typing import Any

from pmt._util.parsing import parse_json
from pmt.net.graph import FEATURE_INPUTS, SEEN_IMAGES

_KEYS = ("name", "class_names", "licence", SEEN_IMAGES, *FEATURE_INPUTS)


def worth_noting(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a model's metadata that every format keeps."""
    return {key: metadata[key] for key in _KEYS if key in metadata}


def noted_metadata(note: str | bytes) -> dict[str, Any]:
    """Return that of a file's note, a JSON object; nothing of a note that is none."""
    try:
        read = parse_json(note, "note")
    except ValueError:
        return {}
    found = read.get("metadata") if isinstance(read, dict) else None
    return worth_noting(found) if isinstance(found, dict) else {}
