"""The catalog of corruptions, each of which declares itself, and the operations that they share.

Source of the constants: D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to
common corruptions and perturbations", ICLR 2019; their scripts make_cifar_c.py, for images of
32x32, and make_imagenet_c.py, for 224x224. Lengths are in pixels of those images.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from pmt._util.arrays import Array, BoolArray, DoubleArray, Int32Array, Int64Array, Uint8Array

SEVERITIES = (1, 2, 3, 4, 5)
Constants = Literal["cifar10", "imagenet"]
CONSTANTS: tuple[Constants, ...] = get_args(Constants)
# Order of the published script; others follow in the order in which they are declared.
_PUBLISHED = (
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    *("speckle_noise", "gaussian_blur", "spatter", "saturate"),
)

Images = Uint8Array
Pixels = DoubleArray
Generators = Sequence[np.random.Generator]
# One for each severity, whatever the corruption takes.
Severities = tuple[Any, Any, Any, Any, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Corruption:
    """A corruption: its function on a batch, and its requirements.

    The function takes uint8 images of shape (N, H, W, C) with C = 1 or 3, the constant of the
    severity, one generator an image (none where it is not random), and as keyword `overlays` those
    of frost where it needs them. It returns uint8 pixels, or float ones of full scale 1 which are
    still to be clipped and truncated.
    """

    function: Callable[..., Any]
    constants: Mapping[Constants, Severities]
    is_random: bool
    needs_overlays: bool


CATALOG: dict[str, Corruption] = {}


def corruption(
    *,
    cifar10: Severities,
    imagenet: Severities,
    is_random: bool = True,
    needs_overlays: bool = False,
) -> Callable[[Function], Function]:
    """Declare a function as the corruption of its name, with its constants of both scripts."""
    constants = dict(zip(CONSTANTS, (cifar10, imagenet), strict=True))

    def declared(function: Function) -> Function:
        CATALOG[function.__name__] = Corruption(function, constants, is_random, needs_overlays)
        return function

    return declared


def names() -> tuple[str, ...]:
    """Names that :func:`pmt.corruptions.corrupt` accepts, in the order of CIFAR-10-C."""
    new = [name for name in CATALOG if name not in _PUBLISHED]
    return (*_PUBLISHED, *new)


Draws = DoubleArray


def standard_normal(shape: tuple[int, ...], generators: Generators) -> Draws:
    """Draw normal numbers of mean 0 and deviation 1; `shape` begins with the number of images."""
    draws = np.empty(shape)
    for image_draws, generator in zip(draws, generators, strict=True):
        generator.standard_normal(out=image_draws)
    return draws


def uniform(shape: tuple[int, ...], generators: Generators) -> Draws:
    """Draw numbers from 0 to below 1; `shape` begins with the number of images."""
    draws = np.empty(shape)
    for image_draws, generator in zip(draws, generators, strict=True):
        generator.random(out=image_draws)
    return draws


LUMA = (0.299, 0.587, 0.114)


def luma(pixels: DoubleArray) -> DoubleArray:
    """Return the luma of the last axis, of 3 channels or already 1, which stays an axis."""
    if pixels.shape[-1] == 1:
        return pixels
    red, green, blue = LUMA
    return red * pixels[..., 0:1] + green * pixels[..., 1:2] + blue * pixels[..., 2:3]


Places = DoubleArray


def bilinear(images: DoubleArray, y: Places, x: Places, *, repeat_edge: bool) -> DoubleArray:
    """Interpolate linearly in both directions; beyond the border an image is mirrored.

    Places are in pixels, (0, 0) the center of the first one, float64 of shape (N, h, w). With
    `repeat_edge` the mirror stands at the edge of the outermost pixels (``c b a | a b c``), else in
    their middle (``c b | a b c``).
    """
    count, height, width, channels = images.shape
    top, left = np.floor(y), np.floor(x)
    down, right = (y - top)[..., None], (x - left)[..., None]
    pixels = images.reshape(-1, channels)
    start = (np.arange(count) * height)[:, None, None]
    rows = [(start + _folded(top + i, height, repeat_edge)) * width for i in (0, 1)]
    columns = [_folded(left + i, width, repeat_edge) for i in (0, 1)]
    lines = []
    for row in rows:
        first, second = (pixels.take(row + column, axis=0) for column in columns)
        second -= first
        second *= right
        second += first
        lines.append(second)
    upper: DoubleArray
    lower: DoubleArray
    upper, lower = lines
    lower -= upper
    lower *= down
    lower += upper
    return lower


def _folded(places: Places, side: int, repeat_edge: bool) -> Int64Array:
    """Indices inside 0..side - 1 for whole numbers on either side of it."""
    if side == 1:
        return np.zeros(places.shape, np.int64)
    period = 2 * side if repeat_edge else 2 * side - 2
    indices = places.astype(np.int64)
    if indices.size and (indices.min() < -period or indices.max() >= period):
        indices %= period
    # The complement of -1 is 0: below the first pixel the mirror repeats it.
    inside = np.where(indices < 0, ~indices, indices) if repeat_edge else np.abs(indices)
    folded: Int64Array = np.minimum(inside, period - int(repeat_edge) - inside)
    return folded


# float32 or float64.
Fields = Array


def zoomed(fields: Fields, factor: float) -> Fields:
    """Enlarge the center by `factor`, linearly interpolated, cut to the old size.

    The center has ``ceil(side / factor)`` pixels a side; its outermost pixels stay outermost, as
    scipy.ndimage.zoom has them, so the true factor is a little larger.

    `fields` is (H, W, ...): the first two axes are enlarged. `factor` is 1 or more.
    """
    height, width = fields.shape[:2]
    flat = fields.reshape(height, width, -1)
    lower, upper, share = _taps(height, factor)
    tall = _between(flat.take(lower, axis=0), flat.take(upper, axis=0), share[:, None, None])
    lower, upper, share = _taps(width, factor)
    # One share for each value of a row: a short last axis would make the arithmetic slow.
    shares = np.repeat(share, flat.shape[2]).reshape(width, -1)
    wide = _between(tall.take(lower, axis=1), tall.take(upper, axis=1), shares)
    return wide.reshape(fields.shape)


def zoomed_side(side: int, factor: float) -> tuple[int, int]:
    """Return the pixels of the center and those it is enlarged to; equal ones give equal zooms."""
    center = math.ceil(side / factor)
    return center, round(center * factor)


def _between(low: Fields, high: Fields, share: Fields) -> Fields:
    """Interpolate; `high` is overwritten. Equal ends give exactly that value."""
    high -= low
    high *= share.astype(high.dtype)
    high += low
    return high


def _taps(side: int, factor: float) -> tuple[Int64Array, Int64Array, DoubleArray]:
    """The two pixels that each new pixel lies between, and the share of the second."""
    center, enlarged = zoomed_side(side, factor)
    ratio = (center - 1) / (enlarged - 1) if enlarged > 1 else 1.0
    places = (np.arange(side) + (enlarged - side) // 2).astype(np.float64) * ratio
    lower = places.astype(np.int64)
    upper = np.minimum(lower + 1, center - 1)
    start = (side - center) // 2
    share: DoubleArray = places - lower
    return start + lower, start + upper, share


# Steps of the mask in 1/2**16 pixel: 1 to a side, 1.4 diagonally, 2.1969 as a knight moves.
ONE = 1 << 16
DIAGONAL = 91750
KNIGHT = 143976
FAR = (2**31 - 1) >> 2

# Steps from the rows above to a pixel: rows up, columns to the right, length.
STEPS = (
    (1, 0, ONE),
    (1, -1, DIAGONAL),
    (1, 1, DIAGONAL),
    (1, -2, KNIGHT),
    (1, 2, KNIGHT),
    (2, -1, KNIGHT),
    (2, 1, KNIGHT),
)


def chamfer_distance(marked: BoolArray) -> DoubleArray:
    """Return the length of the shortest way to a marked pixel, as OpenCV's DIST_L2 with mask 5.

    At most 2 % off the Euclidean distance, in pixels; above 8,000 in an image with no mark.
    """
    distance = np.where(marked, 0, FAR)
    _sweep(distance)
    _sweep(distance[:, ::-1, ::-1])
    return distance / ONE


def _sweep(distance: Int64Array) -> None:
    """Take the ways from above and from the left into account, in place."""
    count, height, width = distance.shape
    ramp = np.arange(width) * ONE
    # Two rows above the image and two columns beside it, all far.
    padded = np.full((count, height + 2, width + 4), FAR)
    padded[:, 2:, 2:-2] = distance
    for y in range(2, height + 2):
        row = padded[:, y, 2:-2]
        for up, right, length in STEPS:
            above = padded[:, y - up, 2 + right : 2 + right + width]
            np.minimum(row, above + length, out=row)
        # A way from the left is one pixel longer in each column.
        row[...] = np.minimum.accumulate(row - ramp, axis=1) + ramp
    distance[...] = padded[:, 2:, 2:-2]


# tan(22.5 degrees), in 1/2**15.
TANGENT, TANGENT_BITS = 13573, 15


def canny_edges(layers: Uint8Array, low: int, high: int, ndimage: ModuleType) -> BoolArray:
    """Return where the edges are, by the rules of OpenCV's Canny.

    Gradients are 3x3 Sobel differences with the border pixels repeated, their magnitude is
    ``|dx| + |dy|``, zero outside the image. A pixel is an edge where the magnitude is a maximum
    across the edge and above `low`, and edge pixels connect it to one above `high`.

    `ndimage` is the module scipy.ndimage.
    """
    dx, dy = _sobel(layers)
    magnitude = np.abs(dx) + np.abs(dy)
    candidates = (magnitude > low) & _thin(dx, dy, magnitude)
    # Neighbors within one image, not across images.
    neighbors = np.zeros((3, 3, 3), bool)
    neighbors[1] = True
    labels, found = ndimage.label(candidates, structure=neighbors)
    strong = np.zeros(found + 1, bool)
    strong[labels[candidates & (magnitude > high)]] = True
    edges: BoolArray = strong[labels]
    return edges


def _sobel(layers: Uint8Array) -> tuple[Int32Array, Int32Array]:
    padded = np.pad(layers, ((0, 0), (1, 1), (1, 1)), mode="edge").astype(np.int32)
    down = padded[:, 2:] - padded[:, :-2]
    across = padded[:, :, 2:] - padded[:, :, :-2]
    dx = across[:, :-2] + 2 * across[:, 1:-1] + across[:, 2:]
    dy = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    return dx, dy


def _thin(dx: Int32Array, dy: Int32Array, magnitude: Int32Array) -> BoolArray:
    """Whether the magnitude is a maximum along the gradient, which has four directions."""
    padded = np.pad(magnitude, ((0, 0), (1, 1), (1, 1)))
    height, width = magnitude.shape[1:]

    def beside(y: int, x: int) -> Int32Array:
        return padded[:, 1 + y : 1 + y + height, 1 + x : 1 + x + width]

    x = np.abs(dx).astype(np.int64)
    y = np.abs(dy).astype(np.int64) << TANGENT_BITS
    flat = y < x * TANGENT
    # tan(67.5 degrees) is tan(22.5 degrees) + 2.
    steep = y > x * (TANGENT + (2 << TANGENT_BITS))
    rising = (dx ^ dy) < 0
    # The comparison is strict on one side: of two equal neighbors the first is kept.
    along_x = (magnitude > beside(0, -1)) & (magnitude >= beside(0, 1))
    along_y = (magnitude > beside(-1, 0)) & (magnitude >= beside(1, 0))
    up_right = (magnitude > beside(-1, 1)) & (magnitude > beside(1, -1))
    up_left = (magnitude > beside(-1, -1)) & (magnitude > beside(1, 1))
    diagonal = np.where(rising, up_right, up_left)
    thin: BoolArray = np.where(flat, along_x, np.where(steep, along_y, diagonal))
    return thin
