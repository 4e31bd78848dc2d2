"""Elastic transform: a random affine map, then every pixel displaced along a smooth field."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.extras import ndimage
from pmt.corruptions.noise import Images, Pixels
from pmt.corruptions.sampling import Places, bilinear

TRUNCATE = 3.0


class Elastic(NamedTuple):
    """Constants of a severity, all in pixels."""

    strength: float
    smoothness: float
    affine: float


def elastic_transform(images: Images, constants: Elastic, generators: Generators) -> Pixels:
    """Map the image affinely, then bend it.

    Three corners of a square in the middle, a third of the image from its centre, move by up to
    `affine` in x and in y, and take the image with them. Then each pixel takes its value from a
    place beside it; the displacement in x and that in y are uniform noise of -1 to 1, smoothed by
    a Gaussian of deviation `smoothness`, times `strength`. Images of fewer than three pixels a
    side get a square of one.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    constants
        Of the severity. A strength of 0 leaves the affine map alone.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.

    Raises
    ------
    ModuleNotFoundError
        SciPy is not installed.

    Notes
    -----
    The published script lets OpenCV map affinely, which rounds places to 1/32 pixel; this
    function does not.
    """
    count, height, width = images.shape[:3]
    jitter = np.empty((count, 3, 2))
    field = np.empty((2, count, height, width))
    for i, generator in enumerate(generators):
        jitter[i] = generator.uniform(-constants.affine, constants.affine, (3, 2))
        field[:, i] = generator.uniform(-1.0, 1.0, (2, height, width))
    y, x = _affine_sources(height, width, jitter)
    mapped = bilinear(images / 255.0, y, x, repeat_edge=False)
    if constants.strength == 0.0:
        return mapped
    deviations = (0, 0, constants.smoothness, constants.smoothness)
    smooth = ndimage("elastic_transform").gaussian_filter
    field = smooth(field, deviations, mode="reflect", truncate=TRUNCATE) * constants.strength
    rows, columns = np.mgrid[:height, :width]
    return bilinear(mapped, rows + field[1], columns + field[0], repeat_edge=True)


def _affine_sources(height: int, width: int, jitter: Places) -> tuple[Places, Places]:
    """Where each pixel of the mapped images lies in the originals: y and x, (N, H, W) each."""
    reach = max(1, min(height, width) // 3)
    centre = np.array([width // 2, height // 2])
    low_right, high_right, high_left = (
        centre + np.array(corner) * reach + jitter[:, i]
        for i, corner in enumerate(((1, 1), (1, -1), (-1, -1)))
    )
    # The map is linear from the high left corner on: one step in x and one in y of the original.
    step_x = (high_right - high_left) / (2 * reach)
    step_y = (low_right - high_right) / (2 * reach)
    area = step_x[:, 0] * step_y[:, 1] - step_x[:, 1] * step_y[:, 0]
    area = np.where(area == 0.0, 1.0, area)
    rows, columns = np.mgrid[:height, :width]
    right = columns - high_left[:, 0, None, None]
    down = rows - high_left[:, 1, None, None]
    in_x = (step_y[:, 1] / area, -step_y[:, 0] / area)
    in_y = (-step_x[:, 1] / area, step_x[:, 0] / area)
    x, y = (
        right * of_right[:, None, None] + down * of_down[:, None, None]
        for of_right, of_down in (in_x, in_y)
    )
    return y + (centre[1] - reach), x + (centre[0] - reach)
