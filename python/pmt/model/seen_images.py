"""The images that a network was trained on, as its model stores them: ranges, by their checksums.

On them the network is nearly right, whatever else is done to it: they can neither teach it much nor
show which state of it is better on others.
"""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from pmt._util.arrays import BoolArray
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.net.graph import SEEN_IMAGES


def range_of_images(data: Dataset, first: int, count: int) -> dict[str, int]:
    """Return ``first``, ``count`` and ``crc32`` of a range of images, at their own size."""
    images = np.ascontiguousarray(data.images[first : first + count])
    return {"first": first, "count": len(images), "crc32": zlib.crc32(images.data)}


def seen_images(metadata: Mapping[str, Any], data: Dataset) -> BoolArray:
    """Find the images of a data set that a network was trained on: bool (N,), true where it was.

    They are found where the data set, at its own size, holds a whole range at its place: the
    official training images of CIFAR-10, and not a thousand of them. The entry ``seen_images`` of a
    model's metadata lists ranges as :func:`range_of_images` returns them.
    """
    seen = np.zeros(len(data), np.bool_)
    ranges = metadata.get(SEEN_IMAGES)
    for one in ranges if isinstance(ranges, list) else ():
        if not isinstance(one, dict):
            continue
        first, count = one.get("first"), one.get("count")
        if type(first) is not int or type(count) is not int:
            continue
        inside = 0 <= first < first + count <= len(data)
        if inside and range_of_images(data, first, count) == one:
            seen[first : first + count] = True
    return seen


def warning_of_seen(seen: int, count: int) -> str:
    """Return the warning that some of the images to train and choose on are not new."""
    return (
        f"the network was trained on {seen:,} of these {counted(count, 'image')} before: what is "
        "chosen on them says little of others; give images that it has not seen"
    )
