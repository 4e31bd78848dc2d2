"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from pmt._util.counted import counted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, "image"), "0 images"),
        ((1, "image"), "1 image"),
        ((2, "test image"), "2 test images"),
        ((1500, "image"), "1,500 images"),
        ((1, "query", "queries"), "1 query"),
        ((2, "query", "queries"), "2 queries"),
    ],
)
def test_only_one_is_singular(arguments, text):
    assert counted(*arguments) == text
