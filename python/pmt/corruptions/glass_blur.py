"""Glass blur: pixels displaced by a little, as seen through frosted glass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.corruptions.draws import Generators
from pmt.corruptions.gaussian_blur import gaussian_blur
from pmt.corruptions.noise import Images, Pixels


def glass_blur(
    images: Images, blur_reach_passes: tuple[float, int, int], generators: Generators
) -> Pixels:
    """Blur, displace every pixel at random, blur again.

    The published script means to swap each pixel with a random neighbour, but the assignment it
    uses swaps views of one array, and so copies the neighbour only. So does this function. The
    reach is not symmetric either: -reach to reach - 1 pixels.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    blur_reach_passes
        Standard deviation of both blurs in pixels; the longest displacement in pixels, an
        integer; how often all pixels are displaced.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    deviation, reach, passes = blur_reach_passes
    count, height, width, channels = images.shape
    blurred = (gaussian_blur(images, deviation, generators) * 255).astype(np.uint8)
    rows, columns = max(0, height - 2 * reach), max(0, width - 2 * reach)
    steps = np.empty((count, passes, rows, columns, 2), np.int64)
    for image_steps, generator in zip(steps, generators, strict=True):
        image_steps[...] = generator.integers(-reach, reach, size=image_steps.shape)
    flat = blurred.reshape(count * height * width, channels)
    for step in range(passes):
        flat = flat[_sources(steps[:, step], reach, height, width)]
    return gaussian_blur(flat.reshape(images.shape), deviation, generators)


def _sources(
    steps: npt.NDArray[np.int64], reach: int, height: int, width: int
) -> npt.NDArray[np.int64]:
    """Where each pixel's value comes from, as indices into the pixels of all images.

    Pixels are displaced one after the other, from the last to the first: one that reads a pixel
    further on reads what was already copied there. Those chains are followed to their ends,
    twice as far in each round.
    """
    count, rows, columns = steps.shape[:3]
    pixels = np.arange(count * height * width).reshape(count, height, width)
    inner = (slice(None), slice(reach + 1, reach + 1 + rows), slice(reach + 1, reach + 1 + columns))
    moved = np.zeros(pixels.shape, bool)
    moved[inner] = True
    neighbours = pixels.copy()
    neighbours[inner] += steps[..., 0] * width + steps[..., 1]
    source = neighbours.ravel()
    unresolved = moved.ravel()[source] & (source > pixels.ravel())
    while unresolved.any():
        open_ends = np.flatnonzero(unresolved)
        through = source[open_ends]
        source[open_ends], unresolved[open_ends] = source[through], unresolved[through]
    return source
