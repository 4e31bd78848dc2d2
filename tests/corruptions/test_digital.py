"""Noise, brightness, contrast, saturate, elastic transform, pixelate, JPEG: slow definitions."""

import colorsys
import io
import sys

import numpy as np
import pytest
from corruption_inputs import constants_of, flat, made_images
from install_hints import install_hint
from PIL import Image
from scipy import ndimage

from pmt.corruptions import corrupt
from pmt.corruptions.catalog import bilinear
from pmt.corruptions.digital import Elastic, elastic_transform


@pytest.mark.parametrize(
    ("severity", "dark", "light"),
    [(1, 25, 175), (2, 50, 150), (3, 60, 140), (4, 70, 130), (5, 85, 115)],
)
def test_contrast_pulls_toward_the_mean_of_each_channel(severity, dark, light):
    images = flat(0, count=2, side=4)
    images[0, :2] = 200
    images[1, ..., 1] = 90
    result = corrupt(images, "contrast", severity)
    # 1 off where the exact value is whole: truncation of a float just below it.
    np.testing.assert_allclose(result[0, 0, 0], light, atol=1)
    np.testing.assert_allclose(result[0, 3, 3], dark, atol=1)
    np.testing.assert_array_equal(result[1, ..., 1], 90)
    np.testing.assert_array_equal(result[1, ..., 0], 0)


@pytest.mark.parametrize(
    ("name", "severity", "scale", "shift", "increase"),
    [
        *(("brightness", i + 1, 1, 0, each) for i, each in enumerate((0.05, 0.1, 0.15, 0.2, 0.3))),
        *(("saturate", i + 1, each, 0, 0) for i, each in enumerate((0.3, 0.1, 1.5))),
        ("saturate", 4, 2.0, 0.1, 0),
        ("saturate", 5, 2.5, 0.2, 0),
    ],
)
def test_it_agrees_with_the_way_through_hsv(name, severity, scale, shift, increase):
    images = made_images(8, 9, 14)
    images[0, 0, :2] = [[0], [90]]
    result = corrupt(images, name, severity)
    expected = np.empty(images.shape)
    for place in np.ndindex(images.shape[:3]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(images[place] / 255.0))
        changed = min(saturation * scale + shift, 1.0), min(value + increase, 1.0)
        expected[place] = np.array(colorsys.hsv_to_rgb(hue, *changed)) * 255
    # Truncated, so up to one below; exactly whole values may fall either way.
    assert (result <= expected + 1e-6).all()
    assert (result > expected - 1 - 1e-6).all()


def test_brightness_of_gray_adds_to_the_value():
    assert corrupt(flat(10, channels=1), "brightness", 4).max() == 61
    assert corrupt(flat(10, channels=1), "brightness", 4).min() == 61
    assert corrupt(flat(250, channels=1), "brightness", 5).min() == 255


def test_saturate_leaves_one_channel_alone():
    image = np.full((1, 4, 4, 1), 51, np.uint8)
    assert abs(int(corrupt(image, "saturate", 5)[0, 0, 0, 0]) - 51) <= 1


def elastic_by_definition(image: np.ndarray, constants: Elastic, seed: int) -> np.ndarray:
    """The published steps: an affine map from three moved corners, then map_coordinates."""
    generator = np.random.default_rng(seed)
    height, width, channels = image.shape
    reach = min(height, width) // 3
    x, y = width // 2, height // 2
    corners = np.array([[x + reach, y + reach], [x + reach, y - reach], [x - reach, y - reach]])
    moved = corners + generator.uniform(-constants.affine, constants.affine, (3, 2))
    inverse = np.linalg.solve(np.c_[moved, np.ones(3)], corners)
    field = generator.uniform(-1.0, 1.0, (2, height, width))
    right, down = (
        constants.strength * ndimage.gaussian_filter(each, constants.smoothness, truncate=3)
        for each in field
    )
    rows, columns = np.mgrid[:height, :width]
    sources = np.stack([columns, rows, np.ones_like(rows)], axis=2) @ inverse
    result = np.empty(image.shape)
    for channel in range(channels):
        # scipy calls the mirror in the middle of a pixel "mirror", that at its edge "reflect".
        mapped = ndimage.map_coordinates(
            image[..., channel] / 255.0, (sources[..., 1], sources[..., 0]), order=1, mode="mirror"
        )
        result[..., channel] = ndimage.map_coordinates(
            mapped, (rows + down, columns + right), order=1, mode="reflect"
        )
    return result


@pytest.mark.parametrize("constants", constants_of("elastic_transform"))
@pytest.mark.parametrize("shape", [(32, 32, 3), (21, 40, 1)])
def test_elastic_transform_is_its_definition(constants, shape):
    images = made_images(2, *shape)
    result = elastic_transform(images, constants, [np.random.default_rng(seed) for seed in (8, 9)])
    for image, bent, seed in zip(images, result, (8, 9), strict=True):
        expected = elastic_by_definition(image, constants, seed)
        np.testing.assert_allclose(bent, expected, atol=1e-8)


def test_elastic_transform_at_severity_1_is_affine():
    y, x = np.indices((32, 32))
    planes = np.repeat((3 * x + 4 * y).astype(np.uint8)[None, :, :, None], 20, axis=0)
    bent = corrupt(planes, "elastic_transform", 1).astype(np.int64)
    # A plane stays a plane where nothing is mirrored: its second differences vanish.
    middle = bent[:, 8:24, 8:24]
    assert np.abs(np.diff(middle, 2, axis=1)).max() <= 1
    assert np.abs(np.diff(middle, 2, axis=2)).max() <= 1
    stronger = corrupt(planes, "elastic_transform", 5).astype(np.int64)
    assert np.abs(np.diff(stronger[:, 8:24, 8:24], 2, axis=1)).max() > 3


def test_elastic_transform_keeps_what_is_flat():
    for value in (0, 1, 37, 128, 254, 255):
        bent = corrupt(np.full((3, 32, 32, 3), value, np.uint8), "elastic_transform", 5)
        assert np.abs(bent.astype(np.int64) - value).max() <= (0 if value in (0, 255) else 1)


@pytest.mark.parametrize(
    ("repeat_edge", "expected"),
    [
        (True, [2.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 2.0, 2.0, 1.0]),
        (False, [1.0, 2.0, 1.5, 1.0, 0.5, 0.0, 0.5, 1.0, 2.0, 1.5, 1.0, 0.0]),
    ],
)
def test_a_ramp_is_mirrored_at_its_ends(repeat_edge, expected):
    ramp = np.arange(3.0).reshape(1, 1, 3, 1)
    x = np.array([-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 4.0])
    found = bilinear(ramp, np.zeros((1, 1, 12)), x.reshape(1, 1, 12), repeat_edge=repeat_edge)
    assert found[0, 0, :, 0].tolist() == expected


@pytest.mark.parametrize(
    ("constants", "sides"), [("cifar10", [30, 28, 27, 24, 20]), ("imagenet", [19, 16, 12, 9, 8])]
)
@pytest.mark.parametrize("channels", [1, 3])
def test_pixelate_is_pillows_box_filter_twice(constants, sides, channels):
    images = made_images(2, 32, 32, channels)
    for severity, side in enumerate(sides, start=1):
        result = corrupt(images, "pixelate", severity, constants=constants)
        for image, coarse in zip(images, result, strict=True):
            picture = Image.fromarray(image.squeeze())
            small = picture.resize((side, side), Image.Resampling.BOX)
            expected = np.asarray(small.resize((32, 32), Image.Resampling.BOX))
            np.testing.assert_array_equal(coarse.squeeze(), expected)


def test_pixelate_makes_blocks():
    images = np.arange(64, dtype=np.uint8).reshape(1, 8, 8, 1)
    # A quarter of 8 pixels: blocks of 4x4, whose means are 13.5, 17.5, 45.5 and 49.5.
    coarse = corrupt(images, "pixelate", 5, constants="imagenet")[0, :, :, 0]
    assert coarse[0].tolist() == [14, 14, 14, 14, 18, 18, 18, 18]
    assert coarse[:, 7].tolist() == [18, 18, 18, 18, 50, 50, 50, 50]


@pytest.mark.parametrize(
    ("constants", "qualities"),
    [("cifar10", [80, 65, 58, 50, 40]), ("imagenet", [25, 18, 15, 10, 7])],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_compression_is_pillows(constants, qualities, channels):
    images = made_images(2, 19, 27, channels)
    for severity, quality in enumerate(qualities, start=1):
        result = corrupt(images, "jpeg_compression", severity, constants=constants)
        for image, compressed in zip(images, result, strict=True):
            file = io.BytesIO()
            Image.fromarray(image.squeeze()).save(file, format="JPEG", quality=quality)
            np.testing.assert_array_equal(compressed.squeeze(), np.asarray(Image.open(file)))


@pytest.mark.parametrize(
    ("name", "package", "module"),
    [
        ("pixelate", "Pillow", "PIL.Image"),
        ("jpeg_compression", "Pillow", "PIL.Image"),
        ("elastic_transform", "SciPy", "scipy.ndimage"),
        ("spatter", "SciPy", "scipy.ndimage"),
    ],
)
def test_what_is_missing_is_named_with_how_to_install_it(name, package, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError) as error:
        corrupt(made_images(), name, 5)
    assert str(error.value) == f"{name} needs {package}: {install_hint('data')}"


@pytest.mark.parametrize(
    ("severity", "deviation"), [(1, 10.2), (2, 15.3), (3, 20.4), (4, 22.95), (5, 25.5)]
)
def test_gaussian_noise_has_its_deviation(severity, deviation):
    noisy = corrupt(flat(128), "gaussian_noise", severity).astype(np.float64)
    # Truncation takes half a gray level off the mean and adds 1/12 to the variance.
    assert noisy.mean() == pytest.approx(127.5, abs=4 * deviation / np.sqrt(noisy.size))
    assert noisy.var() == pytest.approx(deviation**2 + 1 / 12, rel=0.02)


@pytest.mark.parametrize(
    ("severity", "photons", "mean", "variance"),
    [
        (1, 500, 101.512, 52.953),
        (2, 250, 101.513, 108.222),
        (3, 100, 101.532, 260.139),
        (4, 75, 101.600, 346.880),
        (5, 50, 101.547, 521.165),
    ],
)
def test_shot_noise_has_the_moments_of_counts(severity, photons, mean, variance):
    # 102 is 0.4 of full scale. The literals are sums over the Poisson distribution of mean
    # 0.4 photons, each count truncated to its gray level: near 255^2 * 0.4 / photons.
    noisy = corrupt(flat(102), "shot_noise", severity).astype(np.float64)
    assert noisy.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / noisy.size))
    assert noisy.var() == pytest.approx(variance, rel=0.02)
    if severity == 5:
        assert set(np.unique(noisy)) <= {int(count * 255 / 50 + 1e-9) for count in range(51)}


@pytest.mark.parametrize(
    ("severity", "amount"), [(1, 0.01), (2, 0.02), (3, 0.03), (4, 0.05), (5, 0.07)]
)
def test_impulse_noise_is_half_salt_half_pepper(severity, amount):
    noisy = corrupt(flat(77), "impulse_noise", severity)
    assert set(np.unique(noisy)) == {0, 77, 255}
    error = 4 * np.sqrt(amount / 2 / noisy.size)
    assert (noisy == 0).mean() == pytest.approx(amount / 2, abs=error)
    assert (noisy == 255).mean() == pytest.approx(amount / 2, abs=error)
    # Channels are hit on their own: all three at once only by chance.
    assert (noisy != 77).all(axis=3).mean() < 0.002


@pytest.mark.parametrize(
    ("severity", "deviation"), [(1, 6.0), (2, 10.0), (3, 12.0), (4, 16.0), (5, 20.0)]
)
def test_speckle_noise_grows_with_the_value(severity, deviation):
    noisy = corrupt(np.full((40, 32, 32, 3), 100, np.uint8), "speckle_noise", severity)
    assert noisy.mean() == pytest.approx(99.5, abs=4 * deviation / np.sqrt(noisy.size))
    assert noisy.var() == pytest.approx(deviation**2 + 1 / 12, rel=0.02)
    assert corrupt(np.zeros((2, 8, 8, 3), np.uint8), "speckle_noise", severity).max() == 0
