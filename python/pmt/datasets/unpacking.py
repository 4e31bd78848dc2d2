"""How far a compressed file may unpack: a small hostile one must not fill the memory."""

from __future__ import annotations

# Images that unpack further than this are a bomb; the labels of one class may, and are small.
LARGEST_RATIO = 200
ALWAYS_UNPACKED = 1 << 26  # bytes


def largest_unpacked(packed: int) -> int:
    """Return the most bytes that `packed` bytes may become."""
    return max(LARGEST_RATIO * packed, ALWAYS_UNPACKED)
