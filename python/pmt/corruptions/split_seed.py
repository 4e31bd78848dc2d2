"""The rule that the two splits of a data set never share their noise."""

from __future__ import annotations

from pmt.datasets.checks import checked_seed


def split_seed(seed: int, split: str) -> int:
    """Return the seed to corrupt a split with: `seed` for "train", `seed` + 1 for "test".

    Raises
    ------
    ValueError
        Another `split`, or a negative `seed`.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split = {split!r}: must be 'train' or 'test'")
    return checked_seed(seed) + (split == "test")
