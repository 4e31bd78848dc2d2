"""Weather: snow, frost, fog and spatter."""

import functools
import math
import os
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pmt._util.arrays import DoubleArray, Uint8Array
from pmt._util.checks import checked_path
from pmt._util.extras import import_extra
from pmt.corruptions.blur import trail
from pmt.corruptions.catalog import (
    Generators,
    Images,
    Pixels,
    canny_edges,
    chamfer_distance,
    corruption,
    luma,
    standard_normal,
    uniform,
    zoomed,
)
from pmt.datasets.downloading import VARIABLE
from pmt.errors import MissingFileError

# Flakes fall straight down, give or take 45 degrees.
ANGLES = (-135.0, -45.0)


class Snow(NamedTuple):
    """Constants of a severity; shares are of full scale, lengths in pixels."""

    mean: float
    deviation: float
    zoom: float
    threshold: float
    radius: int
    trail: float
    kept: float


@corruption(
    cifar10=(
        Snow(0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
        Snow(0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
        Snow(0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
        Snow(0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
        Snow(0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
    ),
    imagenet=(
        Snow(0.1, 0.3, 3.0, 0.5, 10, 4.0, 0.8),
        Snow(0.2, 0.3, 2.0, 0.5, 12, 4.0, 0.7),
        Snow(0.55, 0.3, 4.0, 0.9, 12, 8.0, 0.7),
        Snow(0.55, 0.3, 4.5, 0.85, 12, 8.0, 0.65),
        Snow(0.55, 0.3, 2.5, 0.85, 12, 12.0, 0.55),
    ),
)
def snow(images: Images, constants: Snow, generators: Generators) -> Pixels:
    """Whiten the image, then add a layer of streaks and the same layer turned upside down.

    The layer is normal noise of the constants' mean and deviation, enlarged by `zoom`; what is
    below `threshold` is dark. The rest is blurred along a line
    (:func:`pmt.corruptions.blur.trail`). A share `kept` of the image stays, the remainder is no
    darker than half gray plus 1.5 times its luma.
    """
    noise = standard_normal(images.shape[:3], generators)
    angles = [generator.uniform(*ANGLES) for generator in generators]
    noise = constants.mean + constants.deviation * noise
    flakes = np.moveaxis(zoomed(np.moveaxis(noise, 0, 2), constants.zoom), 2, 0)
    flakes = np.where(flakes < constants.threshold, 0.0, np.clip(flakes, 0.0, 1.0))
    layer = (flakes * 255).astype(np.uint8)[..., None]
    streaks = trail(layer, constants.radius, constants.trail, angles) / 255.0
    pixels = images / 255.0
    whitened = np.maximum(pixels, luma(pixels) * 1.5 + 0.5)
    whitened = constants.kept * pixels + (1.0 - constants.kept) * whitened
    snowy: Pixels = whitened + streaks + streaks[:, ::-1, ::-1]
    return snowy


# The published script has a sixth file, frost6.jpg, which its random choice never reaches.
FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
ORIGIN = "https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c"
FOLDER = "frost"

Overlays = tuple[Images, ...]


def read_overlays(folder: str | os.PathLike[str] | None = None) -> Overlays:
    """Read the five overlays of frost, RGB, from a folder, by default ``$PMT_DATA/frost``.

    The error names all files that are missing (FileNotFoundError) or do not decode (ValueError),
    and says where to get them.
    """
    where = find_overlays(folder)
    overlays, damaged = [], []
    for name in FILES:
        path = where / name
        status = path.stat()
        try:
            overlays.append(_decoded(path, status.st_mtime_ns, status.st_size))
        except (OSError, ValueError, SyntaxError) as error:
            damaged.append(f"{name} ({error})")
    if damaged:
        raise ValueError(
            f"frost cannot decode {', '.join(damaged)} in {where}: get them again from {ORIGIN}"
        )
    return tuple(overlays)


def find_overlays(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the five overlays, or raise FileNotFoundError as `read_overlays`."""
    where = _folder(folder)
    missing = [name for name in FILES if not (where / name).is_file()]
    if missing:
        raise MissingFileError(
            f"frost needs {', '.join(missing)}, not found in {where}: get them from {ORIGIN} "
            f"and put them there, or into ${VARIABLE}/{FOLDER}"
        )
    return where


def _folder(folder: str | os.PathLike[str] | None) -> Path:
    if folder is not None:
        return checked_path("overlays", folder)
    data = os.environ.get(VARIABLE)
    if not data:
        raise MissingFileError(
            f"frost needs the photographs {', '.join(FILES)}: get them from {ORIGIN}, put them "
            f"into a folder {FOLDER} and set {VARIABLE} to the folder that it is in"
        )
    return Path(data) / FOLDER


@functools.lru_cache(maxsize=2 * len(FILES))
def _decoded(path: Path, modified: int, size: int) -> Images:
    """Decode a file; a changed one, by its time or size, is decoded again."""
    with _pillow().open(path) as picture:
        pixels = np.array(picture.convert("RGB"))
    pixels.flags.writeable = False
    return pixels


class Frost(NamedTuple):
    """Constants of a severity: shares of the image and of the overlay, one pixel of `stride`."""

    image: float
    overlay: float
    stride: int


@corruption(
    cifar10=(
        Frost(1.0, 0.2, 5),
        Frost(1.0, 0.3, 5),
        Frost(0.9, 0.4, 5),
        Frost(0.85, 0.4, 5),
        Frost(0.75, 0.45, 5),
    ),
    imagenet=(
        Frost(1.0, 0.4, 1),
        Frost(0.8, 0.6, 1),
        Frost(0.7, 0.7, 1),
        Frost(0.65, 0.7, 1),
        Frost(0.6, 0.75, 1),
    ),
    needs_overlays=True,
)
def frost(
    images: Images, constants: Frost, generators: Generators, *, overlays: Overlays
) -> Images:
    """Add a random part of a random overlay.

    Images of one channel get its luma. Every `stride`-th pixel of an overlay is used, from the
    middle one of the first `stride` on: OpenCV's linear resizing to 1 / 5 comes to that, for it
    does not average. An overlay smaller than the image is enlarged to cover it.
    """
    height, width, channels = images.shape[1:]
    start = constants.stride // 2
    thinned = [each[start :: constants.stride, start :: constants.stride] for each in overlays]
    frosted = np.empty(images.shape, np.uint8)
    for target, image, generator in zip(frosted, images, generators, strict=True):
        layer = _covering(thinned[generator.integers(len(thinned))], height, width)
        # The end is exclusive, in the published script too: the last place is never chosen.
        y = generator.integers(max(1, layer.shape[0] - height))
        x = generator.integers(max(1, layer.shape[1] - width))
        part = layer[y : y + height, x : x + width].astype(np.float64)
        if channels == 1:
            part = luma(part)
        target[...] = np.minimum(constants.image * image + constants.overlay * part, 255.0)
    return frosted


def _covering(overlay: Images, height: int, width: int) -> Images:
    factor = max(height / overlay.shape[0], width / overlay.shape[1])
    if factor <= 1.0:
        return overlay
    module = _pillow()
    size = (math.ceil(overlay.shape[1] * factor), math.ceil(overlay.shape[0] * factor))
    larger: Images = np.asarray(
        module.fromarray(np.ascontiguousarray(overlay)).resize(size, module.Resampling.BILINEAR)
    )
    return larger


def _pillow() -> Any:
    return import_extra("PIL.Image", "frost needs Pillow", "data")


FIRST_WIBBLE = 100.0


def plasma_fractal(size: int, decay: float, generators: Generators) -> DoubleArray:
    """Make one height map a generator; the maps wrap around at their edges.

    The random amplitude is the square of a "wibble" that starts at 100 and is divided by `decay`
    after each halving of the grid, as in the script that made CIFAR-10-C.

    `size` is a power of two, at least 2; each generator draws ``size * size - 1`` numbers, and
    every map spans exactly 0 to 1.
    """
    draws = 2.0 * uniform((len(generators), size * size - 1), generators) - 1.0
    heights = np.zeros((len(generators), size, size))
    used, step, wibble = 0, size, FIRST_WIBBLE
    while step >= 2:
        cells = (size // step) ** 2
        level = draws[:, used : used + 3 * cells].reshape(-1, 3, size // step, size // step)
        _refine(heights, step, level * wibble**2)
        used, step, wibble = used + 3 * cells, step // 2, wibble / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    heights /= heights.max(axis=(1, 2), keepdims=True)
    return heights


def _refine(heights: DoubleArray, step: int, displacement: DoubleArray) -> None:
    """Halve the grid in place: centers of the squares first, then the middles of their sides."""
    half = step // 2
    corners = heights[:, ::step, ::step]
    right = np.roll(corners, -1, axis=2)
    below = np.roll(corners, -1, axis=1)
    below_right = np.roll(right, -1, axis=1)
    centers = (corners + right + below + below_right) / 4 + displacement[:, 0]
    above_centers = np.roll(centers, 1, axis=1)
    left_centers = np.roll(centers, 1, axis=2)
    tops = (corners + right + centers + above_centers) / 4 + displacement[:, 1]
    lefts = (corners + below + centers + left_centers) / 4 + displacement[:, 2]
    heights[:, half::step, half::step] = centers
    heights[:, ::step, half::step] = tops
    heights[:, half::step, ::step] = lefts


def map_size(height: int, width: int) -> int:
    """Side of the fog's map: the next power of two that covers the image, at least 2."""
    return max(2, 1 << (max(height, width) - 1).bit_length())


@corruption(
    cifar10=((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75)),
    imagenet=((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)),
)
def fog(images: Images, density_and_decay: tuple[float, float], generators: Generators) -> Pixels:
    """Add a fog map, the same for all channels, and keep the image's own maximum.

    The constants: height of the map as a share of full scale, and the decay of
    :func:`plasma_fractal`.
    """
    density, decay = density_and_decay
    height, width = images.shape[1:3]
    maps = plasma_fractal(map_size(height, width), decay, generators)[:, :height, :width, None]
    pixels = images / 255.0
    brightest = pixels.max(axis=(1, 2, 3), keepdims=True)
    foggy: Pixels = (pixels + density * maps) * brightest / (brightest + density)
    return foggy


WATER = np.array([175.0, 238.0, 238.0]) / 255.0  # pale turquoise
MUD = np.array([63.0, 42.0, 20.0]) / 255.0
EDGE_THRESHOLDS = (50, 150)
FARTHEST = 20
# Lights a drop from below right.
RELIEF = np.array([[(-2, -1, 0), (-1, 1, 1), (0, 1, 2)]])
_NINE = np.ones((1, 3, 3))
LEAST_MUD = 0.8

Layers = DoubleArray
Bytes = Uint8Array


class Spatter(NamedTuple):
    """Constants of a severity; shares are of full scale, lengths in pixels.

    `strength` is the largest share of the water's color that is added, or for mud the deviation
    of the Gaussian that smooths its splashes.
    """

    mean: float
    deviation: float
    smoothness: float
    threshold: float
    strength: float
    is_mud: bool


@corruption(
    cifar10=(
        Spatter(0.62, 0.1, 0.7, 0.7, 0.5, is_mud=False),
        Spatter(0.65, 0.1, 0.8, 0.7, 0.5, is_mud=False),
        Spatter(0.65, 0.3, 1.0, 0.69, 0.5, is_mud=False),
        Spatter(0.65, 0.1, 0.7, 0.69, 0.6, is_mud=True),
        Spatter(0.65, 0.1, 0.5, 0.68, 0.6, is_mud=True),
    ),
    imagenet=(
        Spatter(0.65, 0.3, 4.0, 0.69, 0.6, is_mud=False),
        Spatter(0.65, 0.3, 3.0, 0.68, 0.6, is_mud=False),
        Spatter(0.65, 0.3, 2.0, 0.68, 0.5, is_mud=False),
        Spatter(0.65, 0.3, 1.0, 0.65, 1.5, is_mud=True),
        Spatter(0.67, 0.4, 1.0, 0.65, 1.5, is_mud=True),
    ),
)
def spatter(images: Images, constants: Spatter, generators: Generators) -> Pixels:
    """Put a liquid on the image wherever smooth noise is above a threshold.

    Water adds its color, most where the drop is thick and its relief bright; mud covers.
    Images of one channel get the luma of the color.

    The published script divides zero by zero where no pixel is above the threshold, and lets
    liquid thicker than full scale overflow; here the image stays, and the liquid is full scale.
    """
    ndimage = import_extra("scipy.ndimage", "spatter needs SciPy", "data")
    smooth = ndimage.gaussian_filter
    noise = standard_normal(images.shape[:3], generators)
    noise = constants.mean + constants.deviation * noise
    liquid = smooth(noise, (0, constants.smoothness, constants.smoothness), mode="nearest")
    liquid[liquid < constants.threshold] = 0.0
    pixels = images / 255.0
    color = MUD if constants.is_mud else WATER
    if images.shape[3] == 1:
        color = luma(color)
    if not constants.is_mud:
        light = constants.strength * _light_of_water(liquid, ndimage)
        pixels += light[..., None] * color
        return pixels
    splashes = (liquid > constants.threshold).astype(np.float64)
    cover = smooth(splashes, (0, constants.strength, constants.strength), mode="nearest")
    cover[cover < LEAST_MUD] = 0.0
    muddy: Pixels = pixels * (1.0 - cover[..., None]) + cover[..., None] * color
    return muddy


def _light_of_water(liquid: Layers, ndimage: ModuleType) -> Layers:
    """Brightness of the drops, 0 to 1 in each image."""
    thickness = (np.minimum(liquid, 1.0) * 255).astype(np.uint8)
    edges = canny_edges(thickness, *EDGE_THRESHOLDS, ndimage)
    distance = np.minimum(chamfer_distance(edges), FARTHEST)
    # The border is mirrored, its pixels not repeated.
    correlated = functools.partial(ndimage.correlate, mode="mirror")
    height = _equalized((correlated(distance, _NINE) / 9.0).astype(np.uint8))
    relief = np.clip(correlated(height.astype(np.int64), RELIEF), 0, 255)
    # Nine times the mean, in integers: a ninth never ends in one half, so there are no ties.
    relief = (2 * correlated(relief, _NINE) + 9) // 18
    light: Layers = (thickness * relief).astype(np.float64)
    brightest = light.max(axis=(1, 2), keepdims=True)
    light /= np.where(brightest == 0.0, 1.0, brightest)
    return light


def _equalized(layers: Bytes) -> Bytes:
    """Spread the gray levels so that each is as frequent, as OpenCV's equalizeHist."""
    count, height, width = layers.shape
    keys = layers + 256 * np.arange(count)[:, None, None]
    histogram = np.bincount(keys.ravel(), minlength=256 * count).reshape(count, 256)
    first = (histogram > 0).argmax(axis=1)
    of_first = histogram[np.arange(count), first]
    rest = height * width - of_first
    scale = np.float32(255) / np.where(rest == 0, 1, rest).astype(np.float32)
    above = np.cumsum(histogram, axis=1) - of_first[:, None]
    table = np.rint(above.astype(np.float32) * scale[:, None])
    table = np.clip(table, 0, 255).astype(np.uint8)
    spread: Bytes = table.ravel()[keys]
    # A flat image stays as it is.
    return np.where(rest[:, None, None] == 0, layers, spread)
