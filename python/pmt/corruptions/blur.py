"""Blur: defocus, Gaussian, glass, motion and zoom."""

import functools
import math

import numpy as np

from pmt._util.arrays import DoubleArray, Int64Array
from pmt.corruptions.catalog import Generators, Images, Pixels, corruption, zoomed, zoomed_side


def gaussian_weights(distances: Int64Array, deviation: float) -> DoubleArray:
    """Return ``exp(-(distance / deviation)**2 / 2)``, scaled to a sum of 1.

    By the C library, value by value: NumPy's own exponential ends in another last bit on processors
    with AVX-512, and glass blur cuts its first blur to whole gray levels.
    """
    exponents = -0.5 * (distances / deviation) ** 2
    weights = np.array([math.exp(exponent) for exponent in exponents.tolist()])
    weights /= weights.sum()
    return weights


# The published script draws its disks on this grid where they fit in it.
SMALL_RADIUS = 8
# A narrow Gaussian leaves weights of 1e-22 around the disk; no gray level depends on them.
NEGLIGIBLE = 1e-12
# Weights that ought to be equal differ by rounding beyond these digits.
WEIGHT_DIGITS = 15
# In gray levels: keeps rounding from pushing a whole level, as in a flat image, to the one below.
GUARD = 1e-9


@functools.lru_cache(maxsize=16)
def disk(radius: float, softness: float) -> DoubleArray:
    """Return the kernel: a normalized disk of whole pixels, its edge softened by a Gaussian.

    `softness` is the Gaussian's deviation; it is cut to 3x3 pixels up to a radius of 8 and to 5x5
    beyond. The kernel has 17x17 pixels, or for larger disks 2 radius + 1 a side.
    """
    small = radius <= SMALL_RADIUS
    reach = SMALL_RADIUS if small else int(radius)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    kernel: DoubleArray = (x**2 + y**2 <= radius**2).astype(np.float64)
    kernel /= kernel.sum()
    taps = np.arange(-1, 2) if small else np.arange(-2, 3)
    weights = gaussian_weights(taps, softness)
    margin = taps[-1]
    for _ in range(2):
        padded = np.pad(kernel, ((margin, margin), (0, 0)), mode="reflect")
        kernel = np.stack([padded[i : i + len(kernel)] for i in range(len(taps))], axis=2)
        kernel = (kernel * weights).sum(axis=2).T
    kernel.flags.writeable = False
    return kernel


@corruption(
    cifar10=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)),
    imagenet=((3.0, 0.1), (4.0, 0.5), (6.0, 0.5), (8.0, 0.5), (10.0, 0.5)),
    is_random=False,
)
def defocus_blur(
    images: Images, radius_and_softness: tuple[float, float], generators: Generators
) -> Pixels:
    """Blur every channel with a :func:`disk`; the border is mirrored, its pixels not repeated."""
    rings = _rings(*radius_and_softness)
    reach = max(max(y, x) for _, taps in rings for y, x in taps)
    height, width = images.shape[1:3]
    margins = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    padded = np.pad(images, margins, mode="reflect").astype(np.float32)
    blurred = np.full(images.shape, GUARD)
    for weight, taps in rings:
        # Sums of gray levels are whole numbers below 2**24: float32 has them exactly.
        total = np.zeros(images.shape, np.float32)
        for y, x in taps:
            total += padded[:, reach + y : reach + y + height, reach + x : reach + x + width]
        blurred += np.multiply(total, weight, dtype=np.float64)
    blurred /= 255.0
    return blurred


@functools.lru_cache(maxsize=16)
def _rings(radius: float, softness: float) -> tuple[tuple[float, tuple[tuple[int, int], ...]], ...]:
    """The weights of a disk, each with the places (y, x) from the middle that have it."""
    kernel = disk(radius, softness)
    alike = kernel.round(WEIGHT_DIGITS)
    middle = len(kernel) // 2
    rings = []
    for weight in np.unique(alike):
        if weight > NEGLIGIBLE:
            places = np.argwhere(alike == weight) - middle
            taps = tuple((int(y), int(x)) for y, x in places)
            rings.append((float(kernel[alike == weight].mean()), taps))
    return tuple(rings)


# The kernel ends at this many standard deviations.
TRUNCATE = 4.0


@corruption(cifar10=(0.4, 0.6, 0.7, 0.8, 1.0), imagenet=(1.0, 2.0, 3.0, 4.0, 6.0), is_random=False)
def gaussian_blur(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Blur every channel with a normalized Gaussian; the border pixels repeat outwards."""
    radius = int(TRUNCATE * deviation + 0.5)
    weights = gaussian_weights(np.arange(-radius, radius + 1), deviation)
    blurred = images / 255.0
    for axis in (1, 2):
        length = blurred.shape[axis]
        margins = [(radius, radius) if each == axis else (0, 0) for each in range(4)]
        padded = np.moveaxis(np.pad(blurred, margins, mode="edge"), axis, 0)
        shifted = (weight * padded[i : i + length] for i, weight in enumerate(weights))
        blurred = np.moveaxis(sum(shifted, start=np.zeros(())), 0, axis)
    return blurred


@corruption(
    cifar10=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    imagenet=((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
)
def glass_blur(
    images: Images, blur_reach_passes: tuple[float, int, int], generators: Generators
) -> Pixels:
    """Blur, displace every pixel at random, blur again.

    The published script means to swap each pixel with a random neighbor, but the assignment it
    uses swaps views of one array, and so copies the neighbor only. So does this function. The
    reach is not symmetric either: -reach to reach - 1 pixels.

    The constants: deviation of both blurs in pixels, the longest displacement in pixels, and how
    often all pixels are displaced.
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


def _sources(steps: Int64Array, reach: int, height: int, width: int) -> Int64Array:
    """Source of each pixel's value, as indices into the pixels of all images.

    Pixels are displaced one after the other, from the last to the first: one that reads a pixel
    further on reads what was already copied there. Those chains are followed to their ends,
    twice as far in each round.
    """
    count, rows, columns = steps.shape[:3]
    pixels = np.arange(count * height * width).reshape(count, height, width)
    inner = (slice(None), slice(reach + 1, reach + 1 + rows), slice(reach + 1, reach + 1 + columns))
    moved = np.zeros(pixels.shape, bool)
    moved[inner] = True
    neighbors = pixels.copy()
    neighbors[inner] += steps[..., 0] * width + steps[..., 1]
    source = neighbors.ravel()
    unresolved = moved.ravel()[source] & (source > pixels.ravel())
    while unresolved.any():
        open_ends = np.flatnonzero(unresolved)
        through = source[open_ends]
        source[open_ends], unresolved[open_ends] = source[through], unresolved[through]
    return source


LARGEST_ANGLE = 45.0
# Half of the smallest 16-bit step, in gray levels of 8 bit.
HALF_OF_16_BIT = 0.5 / 257


@corruption(
    cifar10=((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5)),
    imagenet=((10, 3.0), (15, 5.0), (15, 8.0), (15, 12.0), (20, 15.0)),
)
def motion_blur(
    images: Images, radius_and_deviation: tuple[int, float], generators: Generators
) -> Images:
    """Blur every image along its own line, at most 45 degrees from the horizontal."""
    angles = [generator.uniform(-LARGEST_ANGLE, LARGEST_ANGLE) for generator in generators]
    return trail(images, *radius_and_deviation, angles)


def trail(images: Images, radius: int, deviation: float, angles: list[float]) -> Images:
    """Blur each image along a line to one side, as ImageMagick's MotionBlurImage does.

    The line has ``2 radius + 1`` pixels, starts at the pixel itself, goes in whole pixels and
    fades as half a Gaussian. The border pixels repeat outwards. As ImageMagick 6 does, the sums
    are rounded to 16 bit and then truncated to 8.

    `angles` are degrees clockwise from the direction of x, one per image; `radius` is 1 or more.
    """
    steps = np.arange(2 * radius + 1)
    weights = gaussian_weights(steps, deviation)
    height, width = images.shape[1:3]
    reach = 2 * radius
    margins = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    padded = np.pad(images, margins, mode="edge")
    blurred = np.empty(images.shape, np.uint8)
    product, total = np.empty(images.shape[1:]), np.empty(images.shape[1:])
    for image, source, angle in zip(blurred, padded, angles, strict=True):
        float_source = source.astype(np.float64)
        total.fill(HALF_OF_16_BIT)
        offsets = _offsets(steps, angle) + reach
        for (x, y), weight in zip(offsets.tolist(), weights.tolist(), strict=True):
            np.multiply(float_source[y : y + height, x : x + width], weight, out=product)
            total += product
        image[...] = total
    return blurred


def _offsets(steps: Int64Array, angle: float) -> Int64Array:
    """Whole pixels (x, y) along a line, halves toward zero at positive and away at negative."""
    direction = np.array((math.cos(math.radians(angle)), math.sin(math.radians(angle))))
    offsets: Int64Array = np.ceil(steps[:, None] * direction - 0.5).astype(np.int64)
    return offsets


@corruption(
    cifar10=((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    imagenet=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    is_random=False,
)
def zoom_blur(images: Images, stop_and_step: tuple[float, float], generators: Generators) -> Pixels:
    """Average the image and its center enlarged by factors from 1 up.

    The factors are those of ``numpy.arange(1, stop, step)``. Rounding errors let some of them
    include the stop, which the published images do too.
    """
    stop, step = stop_and_step
    factors = np.arange(1, stop, step)
    count, height, width, channels = images.shape
    # With the images last, rows and columns are copied whole.
    pixels = np.moveaxis(images, 0, 2).reshape(height, width, count * channels)
    # Gray levels, not shares of full scale: so the mean of equal levels is that level exactly.
    levels = pixels.astype(np.float32)
    total = levels.copy()
    # With few pixels a side neighboring factors enlarge alike; factor 1 leaves all as it is.
    sizes, enlarged = ((height, height), (width, width)), levels
    for factor in factors.tolist():
        wanted = (zoomed_side(height, factor), zoomed_side(width, factor))
        if wanted != sizes:
            sizes, enlarged = wanted, zoomed(levels, factor)
        total += enlarged
    mean = total / np.float64(255 * (len(factors) + 1))
    return np.moveaxis(mean.reshape(height, width, count, channels), 2, 0)
