"""Corruptions: closed-form statistics, exact values, and what the pixels may depend on."""

from __future__ import annotations

import colorsys
import time
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from frost_overlays import write_overlays
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt.corruptions import SEVERITIES, corrupt, names
from pmt.corruptions.weather import plasma_fractal
from pmt.datasets import Dataset

NOISES = ("gaussian_noise", "shot_noise", "impulse_noise")
BLURS = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
WEATHERS = ("snow", "frost", "fog", "brightness")
DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
ALL = (*NOISES, *BLURS, *WEATHERS, *DIGITAL, *EXTRA)
STILL = ("defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression")
RANDOM = tuple(name for name in ALL if name not in (*STILL, "gaussian_blur", "saturate"))


@pytest.fixture(scope="module", autouse=True)
def frost_in_the_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("data")
    write_overlays(folder / "frost")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PMT_DATA", str(folder))
        yield


def flat(value: int, count: int = 40, side: int = 32, channels: int = 3) -> np.ndarray:
    return np.full((count, side, side, channels), value, np.uint8)


def made_batch() -> np.ndarray:
    """Eight colourful 9x14 images from integer arithmetic alone."""
    n, y, x, c = np.indices((8, 9, 14, 3))
    return ((n * 31 + y * 17 + x * 11 + c * 71 + x * y * (c + 1)) % 256).astype(np.uint8)


def test_the_names() -> None:
    assert names() == ALL
    assert SEVERITIES == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("severity", "deviation"), [(1, 10.2), (2, 15.3), (3, 20.4), (4, 22.95), (5, 25.5)]
)
def test_gaussian_noise_has_its_deviation(severity: int, deviation: float) -> None:
    noisy = corrupt(flat(128), "gaussian_noise", severity).astype(np.float64)
    # Truncation takes half a grey level off the mean and adds 1/12 to the variance.
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
def test_shot_noise_has_the_moments_of_counts(
    severity: int, photons: int, mean: float, variance: float
) -> None:
    # 102 is 0.4 of full scale. The literals are sums over the Poisson distribution of mean
    # 0.4 photons, each count truncated to its grey level: near 255^2 * 0.4 / photons.
    noisy = corrupt(flat(102), "shot_noise", severity).astype(np.float64)
    assert noisy.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / noisy.size))
    assert noisy.var() == pytest.approx(variance, rel=0.02)
    if severity == 5:
        assert set(np.unique(noisy)) <= {int(count * 255 / 50 + 1e-9) for count in range(51)}


@pytest.mark.parametrize(
    ("severity", "amount"), [(1, 0.01), (2, 0.02), (3, 0.03), (4, 0.05), (5, 0.07)]
)
def test_impulse_noise_is_half_salt_half_pepper(severity: int, amount: float) -> None:
    noisy = corrupt(flat(77), "impulse_noise", severity)
    assert set(np.unique(noisy)) == {0, 77, 255}
    error = 4 * np.sqrt(amount / 2 / noisy.size)
    assert (noisy == 0).mean() == pytest.approx(amount / 2, abs=error)
    assert (noisy == 255).mean() == pytest.approx(amount / 2, abs=error)
    # Channels are hit on their own: all three at once only by chance.
    assert (noisy != 77).all(axis=3).mean() < 0.002


@pytest.mark.parametrize(
    ("severity", "dark", "light"),
    [(1, 25, 175), (2, 50, 150), (3, 60, 140), (4, 70, 130), (5, 85, 115)],
)
def test_contrast_pulls_towards_the_mean_of_each_channel(
    severity: int, dark: int, light: int
) -> None:
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
    ("severity", "lowest"), [(1, 212.5), (2, 170), (3, 145.71), (4, 127.5), (5, 102)]
)
def test_fog_on_white_spans_its_density(severity: int, lowest: float) -> None:
    foggy = corrupt(flat(255, count=5), "fog", severity)
    for image in foggy:
        assert int(image.min()) in (int(lowest), int(lowest) - 1)
        assert int(image.max()) >= 254
        np.testing.assert_array_equal(image[..., 0], image[..., 2])


def test_fog_leaves_a_black_image_black() -> None:
    assert corrupt(flat(0, count=2), "fog", 5).max() == 0


def test_fog_is_smoother_with_a_larger_decay() -> None:
    generators = [np.random.default_rng(seed) for seed in range(50)]
    maps = [plasma_fractal(32, decay, generators) for decay in (1.75, 2.0, 2.5, 3.0)]
    steps = [float(np.abs(np.diff(each, axis=1)).mean()) for each in maps]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.3 * steps[3]


def point_by_point_plasma(size: int, decay: float, draws: np.ndarray) -> np.ndarray:
    """Diamond-square from its definition, with the draws in the order centre, top, left."""
    heights = np.zeros((size, size))
    step, wibble, used = size, 100.0, 0
    while step >= 2:
        half, cells = step // 2, size // step
        centre, top, left = draws[used : used + 3 * cells**2].reshape(3, cells, cells) * wibble**2
        starts = [(i, j) for i in range(cells) for j in range(cells)]
        for i, j in starts:
            y, x = i * step + half, j * step + half
            corners = [
                heights[(y + a) % size, (x + b) % size]
                for a in (-half, half)
                for b in (-half, half)
            ]
            heights[y, x] = sum(corners) / 4 + centre[i, j]
        for noise, y_shift, x_shift in ((top, 0, half), (left, half, 0)):
            for i, j in starts:
                y, x = i * step + y_shift, j * step + x_shift
                sides = [
                    heights[(y + a) % size, (x + b) % size]
                    for a, b in ((half, 0), (-half, 0), (0, half), (0, -half))
                ]
                heights[y, x] = sum(sides) / 4 + noise[i, j]
        used, step, wibble = used + 3 * cells**2, half, wibble / decay
    heights -= heights.min()
    return heights / heights.max()


@pytest.mark.parametrize("size", [2, 4, 16])
def test_plasma_is_diamond_square_point_by_point(size: int) -> None:
    maps = plasma_fractal(size, 2.0, [np.random.default_rng(seed) for seed in (1, 2)])
    for seed, heights in zip((1, 2), maps, strict=True):
        draws = 2 * np.random.default_rng(seed).random(size * size - 1) - 1
        np.testing.assert_allclose(heights, point_by_point_plasma(size, 2.0, draws), atol=1e-12)
        assert (heights.min(), heights.max()) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("severity", "increase"), [(1, 0.05), (2, 0.1), (3, 0.15), (4, 0.2), (5, 0.3)]
)
def test_brightness_agrees_with_the_way_through_hsv(severity: int, increase: float) -> None:
    images = made_batch()
    images[0, 0, 0] = 0
    result = corrupt(images, "brightness", severity)
    expected = np.empty(images.shape)
    for place in np.ndindex(images.shape[:3]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(images[place] / 255.0))
        brighter = colorsys.hsv_to_rgb(hue, saturation, min(value + increase, 1.0))
        expected[place] = np.array(brighter) * 255
    # Truncated, so up to one below; exactly whole values may fall either way.
    assert (result <= expected + 1e-6).all()
    assert (result > expected - 1 - 1e-6).all()


def test_brightness_of_grey_adds_to_the_value() -> None:
    assert corrupt(flat(10, channels=1), "brightness", 4).max() == 61
    assert corrupt(flat(10, channels=1), "brightness", 4).min() == 61
    assert corrupt(flat(250, channels=1), "brightness", 5).min() == 255


# Not of jpeg_compression: its pixels are those of the installed Pillow.
GOLDEN = {
    "gaussian_noise": 0x8C58D066,
    "shot_noise": 0x252BD57B,
    "impulse_noise": 0xE3BD4161,
    "defocus_blur": 0xE5FA9C0B,
    "glass_blur": 0xD3DB105B,
    "motion_blur": 0xE48603E4,
    "zoom_blur": 0xCEF9AAE5,
    "snow": 0x5EEAA912,
    "frost": 0x68448671,
    "fog": 0xD3AF6795,
    "brightness": 0x9B391113,
    "contrast": 0x3E311A4C,
    "elastic_transform": 0x190F6945,
    "pixelate": 0x3C921CFA,
    "spatter": 0x78772665,
    "speckle_noise": 0x967071E9,
    "gaussian_blur": 0xBF10F177,
    "saturate": 0x88BD7F68,
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_pixels_stay_the_same_from_release_to_release(name: str) -> None:
    assert zlib.crc32(corrupt(made_batch(), name, 3, seed=7).tobytes()) == GOLDEN[name]


@pytest.mark.parametrize("name", ALL)
def test_a_subset_with_its_indices_gets_the_same_pixels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = made_batch()
    whole = corrupt(images, name, 5, seed=3)
    np.testing.assert_array_equal(
        corrupt(images[[6, 1]], name, 5, seed=3, indices=[6, 1]), whole[[6, 1]]
    )
    for index in range(8):
        one = corrupt(images[index : index + 1], name, 5, seed=3, indices=[index])
        np.testing.assert_array_equal(one[0], whole[index])
    monkeypatch.setattr("pmt.corruptions.apply.VALUES_A_CHUNK", 1000)
    np.testing.assert_array_equal(corrupt(images, name, 5, seed=3), whole)


@pytest.mark.parametrize("name", RANDOM)
def test_random_pixels_differ_between_indices_seeds_and_severities(name: str) -> None:
    image = np.repeat(made_batch()[:1], 2, axis=0)
    whole = corrupt(image, name, 5)
    assert (whole[0] != whole[1]).any()
    assert (corrupt(image, name, 5, seed=1) != whole).any()
    assert (corrupt(image, name, 5, seed=1 << 64) != whole).any()
    np.testing.assert_array_equal(corrupt(image, name, 5), whole)


def test_a_data_set_keeps_its_labels_and_its_own_pixels() -> None:
    images = made_batch()
    dataset = Dataset(images=images, labels=np.arange(8) % 2, class_names=("a", "b"), name="made")
    noisy = corrupt(dataset, "gaussian_noise", 2)
    np.testing.assert_array_equal(noisy.images, corrupt(images, "gaussian_noise", 2))
    np.testing.assert_array_equal(dataset.images, images)
    assert noisy.labels.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert (noisy.class_names, noisy.name) == (("a", "b"), "made-gaussian_noise-2")
    part = corrupt(dataset.subset([5, 2]), "gaussian_noise", 2, indices=[5, 2])
    np.testing.assert_array_equal(part.images, noisy.images[[5, 2]])


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(ALL),
    severity=st.sampled_from(SEVERITIES),
    constants=st.sampled_from(("cifar10", "imagenet")),
    shape=st.tuples(
        st.integers(0, 3), st.integers(1, 40), st.integers(1, 40), st.sampled_from((1, 3))
    ),
    value=st.integers(0, 255),
)
def test_any_shape_comes_back_as_uint8_of_that_shape(
    name: str, severity: int, constants: str, shape: tuple[int, int, int, int], value: int
) -> None:
    result = corrupt(np.full(shape, value, np.uint8), name, severity, constants=constants)
    assert result.shape == shape
    assert result.dtype == np.uint8


IMAGE = np.zeros((1, 4, 4, 3), np.uint8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (IMAGE, "rain", 1),
            ValueError,
            "name = 'rain': no such corruption; choose one of gaussian_noise, shot_noise, "
            "impulse_noise, defocus_blur, glass_blur, motion_blur, zoom_blur, snow, frost, fog, "
            "brightness, contrast, elastic_transform, pixelate, jpeg_compression, speckle_noise, "
            "gaussian_blur, spatter, saturate$",
        ),
        ((IMAGE, "fog", 0), ValueError, "severity = 0: choose one of 1, 2, 3, 4, 5"),
        ((IMAGE, "fog", 6), ValueError, "severity = 6: choose one of 1, 2, 3, 4, 5"),
        ((IMAGE, "fog", 2.5), TypeError, "severity = 2.5: must be an integer"),
        ((IMAGE, "fog", True), TypeError, "severity = True: must be an integer"),
        ((IMAGE / 1.0, "fog", 1), TypeError, "images is float64: must be a Dataset or a uint8"),
        (([[0]], "fog", 1), TypeError, "images is list: must be"),
        ((IMAGE[0], "fog", 1), ValueError, r"images has shape \(4, 4, 3\): must be \(N, H, W, C\)"),
        ((IMAGE[..., :2], "fog", 1), ValueError, r"images has shape \(1, 4, 4, 2\)"),
    ],
)
def test_wrong_arguments(
    arguments: tuple[object, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        corrupt(*arguments)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed = -1: a seed is 0 or more"),
        ({"seed": 1.0}, TypeError, "seed = 1.0: must be an integer"),
        ({"indices": [0, 1]}, ValueError, r"indices has shape \(2,\): must be \(1,\)"),
        ({"indices": [-1]}, ValueError, "indices holds -1"),
        ({"indices": [0.5]}, TypeError, "indices is float64: must be integers"),
        (
            {"constants": "cifar"},
            ValueError,
            "constants = 'cifar': choose one of cifar10, imagenet",
        ),
        ({"constants": None}, ValueError, "constants = None: choose one of cifar10, imagenet"),
    ],
)
def test_wrong_options(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        corrupt(IMAGE, "fog", 1, **options)  # type: ignore[call-overload]


@pytest.mark.alone
@pytest.mark.parametrize("name", [*NOISES, *STILL, "fog", "frost", "speckle_noise", "saturate"])
def test_two_thousand_images_a_second(name: str) -> None:
    # 2,000 a second are 0.25 s here. In yardsticks, because a machine's neighbours make it slower
    # by half: one is 0.095 s on a quiet Xeon of 2.5 GHz.
    images = flat(100, count=500)
    ratios = []
    for _ in range(3):
        yardstick = process_seconds(lambda: np.random.default_rng(0).poisson(5.0, images.shape))
        ratios.append(process_seconds(lambda: corrupt(images, name, 5)) / yardstick)
    assert min(ratios) < 0.25 / 0.095


def process_seconds(work: Callable[[], object]) -> float:
    """Return the time of this process: other loads of the machine do not count."""
    start = time.process_time()
    work()
    return time.process_time() - start
