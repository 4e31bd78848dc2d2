"""Noise, and digital: brightness, contrast, saturation, pixels, JPEG, elastic transform."""

import io
from typing import NamedTuple

import numpy as np

from pmt._util.extras import import_extra
from pmt.corruptions.catalog import (
    Generators,
    Images,
    Pixels,
    Places,
    bilinear,
    corruption,
    standard_normal,
    uniform,
)
from pmt.datasets.picture import to_picture, to_pixels


@corruption(cifar10=(0.04, 0.06, 0.08, 0.09, 0.10), imagenet=(0.08, 0.12, 0.18, 0.26, 0.38))
def gaussian_noise(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Add independent normal noise to every value; its deviation is a share of full scale."""
    return images / 255.0 + deviation * standard_normal(images.shape, generators)


@corruption(cifar10=(500.0, 250.0, 100.0, 75.0, 50.0), imagenet=(60.0, 25.0, 12.0, 5.0, 3.0))
def shot_noise(images: Images, photons: float, generators: Generators) -> Pixels:
    """Replace every value by a Poisson count with that mean; `photons` is full scale."""
    expected = images / 255.0 * photons
    counts = np.empty(images.shape)
    for image_counts, rate, generator in zip(counts, expected, generators, strict=True):
        image_counts[...] = generator.poisson(rate)
    return counts / photons


@corruption(cifar10=(0.01, 0.02, 0.03, 0.05, 0.07), imagenet=(0.03, 0.06, 0.09, 0.17, 0.27))
def impulse_noise(images: Images, amount: float, generators: Generators) -> Pixels:
    """Set a share of all values to black or white, half and half, each channel on its own."""
    draw = uniform(images.shape, generators)
    pixels = images / 255.0
    pixels[draw < amount] = 1.0
    pixels[draw < amount / 2] = 0.0
    return pixels


@corruption(cifar10=(0.06, 0.1, 0.12, 0.16, 0.2), imagenet=(0.15, 0.2, 0.35, 0.45, 0.6))
def speckle_noise(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Add independent normal noise whose deviation is a share of each value: black stays black."""
    pixels = images / 255.0
    return pixels + deviation * pixels * standard_normal(images.shape, generators)


@corruption(
    cifar10=(0.05, 0.1, 0.15, 0.2, 0.3), imagenet=(0.1, 0.2, 0.3, 0.4, 0.5), is_random=False
)
def brightness(images: Images, increase: float, generators: Generators) -> Pixels:
    """Add a constant to V of HSV, clipped at full scale.

    With hue and saturation S fixed, the way to HSV and back has a closed form: a channel x is
    V * (1 - S k), where k depends on the hue alone, so S k = (V - x) / V and the brighter channel
    is V' * (1 - (V - x) / V). Black has no hue and becomes gray; a gray image gets V' itself.
    """
    pixels = images / 255.0
    value = pixels.max(axis=3, keepdims=True)
    brighter = np.minimum(value + increase, 1.0)
    lightest = np.where(value == 0.0, 1.0, value)
    brightened: Pixels = brighter * (1.0 - (value - pixels) / lightest)
    return brightened


@corruption(
    cifar10=(0.75, 0.5, 0.4, 0.3, 0.15), imagenet=(0.4, 0.3, 0.2, 0.1, 0.05), is_random=False
)
def contrast(images: Images, factor: float, generators: Generators) -> Pixels:
    """Scale the distance of every value to the mean of image and channel; `factor` of it stays."""
    height, width = images.shape[1:3]
    # An integer sum has no order: the mean of an image cannot depend on the batch it came in.
    total = images.sum(axis=(1, 2), keepdims=True, dtype=np.int64)
    mean = total / (height * width) / 255.0
    pulled: Pixels = (images / 255.0 - mean) * factor + mean
    return pulled


@corruption(
    cifar10=((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),
    imagenet=((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
    is_random=False,
)
def saturate(
    images: Images, scale_and_shift: tuple[float, float], generators: Generators
) -> Pixels:
    """Replace S of HSV by ``scale * S + shift``, clipped to 0..1; hue and value stay.

    A channel x is V * (1 - S k), where k depends on the hue alone. A gray pixel has no hue; like
    the published script, which gives it hue 0, a shift tints it red. Images of one channel have
    no saturation and stay as they are.
    """
    pixels = images / 255.0
    if images.shape[3] == 1:
        return pixels
    scale, shift = scale_and_shift
    value = pixels.max(axis=3, keepdims=True)
    spread = value - pixels.min(axis=3, keepdims=True)
    gray = spread == 0.0
    saturation = spread / np.where(value == 0.0, 1.0, value)
    hue = np.where(gray, (0.0, 1.0, 1.0), (value - pixels) / np.where(gray, 1.0, spread))
    changed: Pixels = value * (1.0 - np.clip(saturation * scale + shift, 0.0, 1.0) * hue)
    return changed


@corruption(
    cifar10=(0.95, 0.9, 0.85, 0.75, 0.65), imagenet=(0.6, 0.5, 0.4, 0.3, 0.25), is_random=False
)
def pixelate(images: Images, share: float, generators: Generators) -> Images:
    """Shrink to `share` of the sides, cut to whole pixels, and enlarge, by Pillow's box filter."""
    module = import_extra("PIL.Image", "pixelate needs Pillow", "data")
    height, width = images.shape[1:3]
    size = (max(1, int(width * share)), max(1, int(height * share)))
    result = np.empty(images.shape, np.uint8)
    for target, image in zip(result, images, strict=True):
        small = to_picture(module, image).resize(size, module.Resampling.BOX)
        target[...] = to_pixels(small.resize((width, height), module.Resampling.BOX))
    return result


@corruption(cifar10=(80, 65, 58, 50, 40), imagenet=(25, 18, 15, 10, 7), is_random=False)
def jpeg_compression(images: Images, quality: int, generators: Generators) -> Images:
    """Compress by Pillow, color at half resolution; versions of the library differ slightly."""
    module = import_extra("PIL.Image", "jpeg_compression needs Pillow", "data")
    result = np.empty(images.shape, np.uint8)
    for target, image in zip(result, images, strict=True):
        buffer = io.BytesIO()
        to_picture(module, image).save(buffer, "JPEG", quality=quality)
        target[...] = to_pixels(module.open(buffer))
    return result


TRUNCATE = 3.0


class Elastic(NamedTuple):
    """Constants of a severity, all in pixels."""

    strength: float
    smoothness: float
    affine: float


@corruption(
    cifar10=(
        Elastic(0.0, 0.0, 32 * 0.08),
        Elastic(32 * 0.05, 32 * 0.2, 32 * 0.07),
        Elastic(32 * 0.08, 32 * 0.06, 32 * 0.06),
        Elastic(32 * 0.1, 32 * 0.04, 32 * 0.05),
        Elastic(32 * 0.1, 32 * 0.03, 32 * 0.03),
    ),
    # 244 for 224 is a slip of the published script, and so part of the published images.
    imagenet=(
        Elastic(244 * 2, 244 * 0.7, 244 * 0.1),
        Elastic(244 * 2, 244 * 0.08, 244 * 0.2),
        Elastic(244 * 0.05, 244 * 0.01, 244 * 0.02),
        Elastic(244 * 0.07, 244 * 0.01, 244 * 0.02),
        Elastic(244 * 0.12, 244 * 0.01, 244 * 0.02),
    ),
)
def elastic_transform(images: Images, constants: Elastic, generators: Generators) -> Pixels:
    """Map the image affinely, then bend it.

    Three corners of a square in the middle, a third of the image from its center, move by up to
    `affine` in x and in y, and take the image with them. Then each pixel takes its value from a
    place beside it; the displacement in x and that in y are uniform noise of -1 to 1, smoothed by
    a Gaussian of deviation `smoothness`, times `strength`. Images of fewer than three pixels a
    side get a square of one.

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
    ndimage = import_extra("scipy.ndimage", "elastic_transform needs SciPy", "data")
    field = ndimage.gaussian_filter(field, deviations, mode="reflect", truncate=TRUNCATE)
    field *= constants.strength
    rows, columns = np.mgrid[:height, :width]
    return bilinear(mapped, rows + field[1], columns + field[0], repeat_edge=True)


def _affine_sources(height: int, width: int, jitter: Places) -> tuple[Places, Places]:
    """Places in the originals of the mapped images' pixels: y and x, (N, H, W) each."""
    reach = max(1, min(height, width) // 3)
    center = np.array([width // 2, height // 2])
    low_right, high_right, high_left = (
        center + np.array(corner) * reach + jitter[:, i]
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
    return y + (center[1] - reach), x + (center[0] - reach)
