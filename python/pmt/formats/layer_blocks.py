"""Named groups of layers ("blocks") that every imported network offers for training."""

from __future__ import annotations

from collections.abc import Sequence

BLOCK_COUNT = 4


def consecutive_blocks(layers: Sequence[int]) -> dict[str, list[int]]:
    """Split layers into ``B1`` .. ``B4``: consecutive groups whose sizes differ by at most one.

    Parameters
    ----------
    layers : sequence of int
        Op indices of the layers to split, ascending. The larger groups come first.

    Returns
    -------
    dict of str to list of int
        Only groups that are not empty: fewer than four layers give fewer than four blocks.
    """
    base, larger = divmod(len(layers), BLOCK_COUNT)
    blocks: dict[str, list[int]] = {}
    first = 0
    for number in range(BLOCK_COUNT):
        count = base + (number < larger)
        if count:
            blocks[f"B{number + 1}"] = list(layers[first : first + count])
        first += count
    return blocks
