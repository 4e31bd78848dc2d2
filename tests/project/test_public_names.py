"""The names that completion offers are the public ones."""

from __future__ import annotations

import pmt


def test_dir_shows_only_the_public_names() -> None:
    assert dir(pmt) == sorted(pmt.__all__)
    assert {"Model", "ZOTrainer", "load", "datasets", "corruptions", "methods"} <= set(dir(pmt))
    assert not {"_core", "annotations", "net", "formats"} & set(dir(pmt))


def test_every_public_name_is_there() -> None:
    assert [name for name in pmt.__all__ if not hasattr(pmt, name)] == []
