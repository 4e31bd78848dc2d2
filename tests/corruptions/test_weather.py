"""Snow, frost and fog: slow definitions, and what frost says where it has no overlays."""

import zlib

import numpy as np
import pytest
from corruption_inputs import constants_of, flat, made_images
from frost_overlays import NAMES, made_overlay, write_overlays
from PIL import Image
from scipy import ndimage

from pmt.corruptions import corrupt
from pmt.corruptions.blur import trail
from pmt.corruptions.weather import Frost, Snow, frost, plasma_fractal, read_overlays, snow


@pytest.mark.parametrize(
    ("severity", "lowest"), [(1, 212.5), (2, 170), (3, 145.71), (4, 127.5), (5, 102)]
)
def test_fog_on_white_spans_its_density(severity, lowest):
    foggy = corrupt(flat(255, count=5), "fog", severity)
    for image in foggy:
        assert int(image.min()) in (int(lowest), int(lowest) - 1)
        assert int(image.max()) >= 254
        np.testing.assert_array_equal(image[..., 0], image[..., 2])


def test_fog_leaves_a_black_image_black():
    assert corrupt(flat(0, count=2), "fog", 5).max() == 0


def test_fog_is_smoother_with_a_larger_decay():
    generators = [np.random.default_rng(seed) for seed in range(50)]
    maps = [plasma_fractal(32, decay, generators) for decay in (1.75, 2.0, 2.5, 3.0)]
    steps = [float(np.abs(np.diff(each, axis=1)).mean()) for each in maps]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.3 * steps[3]


def point_by_point_plasma(size: int, decay: float, draws: np.ndarray) -> np.ndarray:
    """Diamond-square from its definition, with the draws in the order center, top, left."""
    heights = np.zeros((size, size))
    step, wibble, used = size, 100.0, 0
    while step >= 2:
        half, cells = step // 2, size // step
        center, top, left = draws[used : used + 3 * cells**2].reshape(3, cells, cells) * wibble**2
        starts = [(i, j) for i in range(cells) for j in range(cells)]
        for i, j in starts:
            y, x = i * step + half, j * step + half
            corners = [
                heights[(y + a) % size, (x + b) % size]
                for a in (-half, half)
                for b in (-half, half)
            ]
            heights[y, x] = sum(corners) / 4 + center[i, j]
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
def test_plasma_is_diamond_square_point_by_point(size):
    maps = plasma_fractal(size, 2.0, [np.random.default_rng(seed) for seed in (1, 2)])
    for seed, heights in zip((1, 2), maps, strict=True):
        draws = 2 * np.random.default_rng(seed).random(size * size - 1) - 1
        np.testing.assert_allclose(heights, point_by_point_plasma(size, 2.0, draws), atol=1e-12)
        assert (heights.min(), heights.max()) == (0.0, 1.0)


def snow_by_definition(image: np.ndarray, constants: Snow, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    side = len(image)
    noise = constants.mean + constants.deviation * generator.standard_normal((side, side))
    small = int(np.ceil(side / constants.zoom))
    start = (side - small) // 2
    large = ndimage.zoom(
        noise[start : start + small, start : start + small], constants.zoom, order=1
    )
    cut = (len(large) - side) // 2
    layer = large[cut : cut + side, cut : cut + side].clip(max=1.0)
    layer[layer < constants.threshold] = 0.0
    layer = (layer * 255).astype(np.uint8)[None, ..., None]
    angle = generator.uniform(-135.0, -45.0)
    layer = trail(layer, constants.radius, constants.trail, [angle])[0] / 255.0
    pixels = image / 255.0
    gray = (pixels * [0.299, 0.587, 0.114]).sum(axis=2, keepdims=True)
    white = np.maximum(pixels, 1.5 * gray + 0.5)
    mixed = constants.kept * pixels + (1 - constants.kept) * white
    return mixed + layer + np.rot90(layer, 2)


@pytest.mark.parametrize("constants", constants_of("snow"))
def test_snow_is_its_definition(constants):
    images = made_images()
    result = snow(images, constants, [np.random.default_rng(seed) for seed in (5, 6)])
    for image, snowy, seed in zip(images, result, (5, 6), strict=True):
        np.testing.assert_allclose(snowy, snow_by_definition(image, constants, seed), atol=1e-9)


@pytest.mark.parametrize(
    ("severity", "floor", "flakes"),
    [(1, 6, 2.1), (2, 12, 6.4), (3, 12, 8.6), (4, 19, 12.4), (5, 25, 20.0)],
)
def test_snow_on_black_is_symmetric_and_bright(severity, floor, flakes):
    snowy = corrupt(np.zeros((40, 32, 32, 3), np.uint8), "snow", severity)
    np.testing.assert_array_equal(snowy, snowy[:, ::-1, ::-1])
    np.testing.assert_array_equal(snowy[..., 0], snowy[..., 2])
    # A black pixel turns half gray for the share that is not kept; the flakes come on top.
    assert snowy.min() == floor
    assert snowy.mean() - floor == pytest.approx(flakes, rel=0.15)


def made_overlays() -> tuple[np.ndarray, ...]:
    return tuple(made_overlay(number) for number in range(1, 6))


@pytest.mark.parametrize(
    "constants", [Frost(0.75, 0.45, 1), Frost(1.0, 0.3, 1), Frost(0.9, 0.4, 2)]
)
def test_frost_adds_a_part_of_an_overlay(constants):
    images = made_images(2, 20, 25)
    overlays = made_overlays()
    result = frost(
        images, constants, [np.random.default_rng(seed) for seed in (3, 4)], overlays=overlays
    )
    start = constants.stride // 2
    for image, frosted, seed in zip(images, result, (3, 4), strict=True):
        generator = np.random.default_rng(seed)
        overlay = overlays[generator.integers(5)][
            start :: constants.stride, start :: constants.stride
        ]
        y = generator.integers(overlay.shape[0] - 20)
        x = generator.integers(overlay.shape[1] - 25)
        part = overlay[y : y + 20, x : x + 25]
        mixed = constants.image * image + constants.overlay * part
        np.testing.assert_array_equal(frosted, np.clip(mixed, 0, 255).astype(np.uint8))


def test_frost_uses_five_overlays_and_many_parts_of_them():
    images = np.zeros((400, 8, 8, 3), np.uint8)
    overlays = tuple(np.full((40, 40, 3), 40 * number, np.uint8) for number in range(1, 6))
    generators = [np.random.default_rng(seed) for seed in range(400)]
    frosted = frost(images, Frost(1.0, 0.5, 5), generators, overlays=overlays)
    levels, counts = np.unique(frosted[:, 0, 0, 0], return_counts=True)
    assert levels.tolist() == [20, 40, 60, 80, 100]
    assert counts.min() > 50
    # This one repeats itself after 40 columns; there are 200 different parts of it.
    generators = [np.random.default_rng(seed) for seed in range(400)]
    frosted = frost(images, Frost(1.0, 1.0, 1), generators, overlays=made_overlays()[:1])
    assert len({each.tobytes() for each in frosted}) > 150


def test_frost_enlarges_an_overlay_that_does_not_cover_the_image():
    images = np.zeros((1, 50, 20, 1), np.uint8)
    overlay = np.zeros((25, 30, 3), np.uint8)
    overlay[:, :15] = 100
    generator = np.random.default_rng(0)
    frosted = frost(images, Frost(1.0, 1.0, 1), [generator], overlays=(overlay,))[0, :, :, 0]
    assert frosted.shape == (50, 20)
    assert set(np.unique(frosted)) <= {0, 25, 75, 100}


def test_frost_is_found_in_the_folder_or_in_the_data_folder(tmp_path, monkeypatch):
    write_overlays(tmp_path / "frost")
    images = made_images()
    monkeypatch.delenv("PMT_DATA", raising=False)
    expected = corrupt(images, "frost", 5, overlays=tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    np.testing.assert_array_equal(corrupt(images, "frost", 5), expected)
    # Another photograph in place of one that was read before is read anew.
    for name in NAMES:
        Image.fromarray(np.full((80, 80, 3), 128, np.uint8)).save(tmp_path / "frost" / name)
    assert corrupt(np.zeros((1, 8, 8, 3), np.uint8), "frost", 5).max() == 57


def test_frost_without_overlays_says_where_to_get_them(tmp_path, monkeypatch):
    images = made_images()
    monkeypatch.delenv("PMT_DATA", raising=False)
    with pytest.raises(FileNotFoundError) as nowhere:
        corrupt(images, "frost", 1)
    assert str(nowhere.value) == (
        "frost needs the photographs frost1.png, frost2.png, frost3.png, frost4.jpg, frost5.jpg: "
        "get them from https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c, "
        "put them into a folder frost and set PMT_DATA to the folder that it is in"
    )
    write_overlays(tmp_path / "frost")
    (tmp_path / "frost" / "frost2.png").unlink()
    (tmp_path / "frost" / "frost5.jpg").unlink()
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as missing:
        corrupt(images, "frost", 1)
    assert str(missing.value) == (
        f"frost needs frost2.png, frost5.jpg, not found in {tmp_path / 'frost'}: get them from "
        "https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c and put them "
        "there, or into $PMT_DATA/frost"
    )


def test_frost_names_overlays_that_do_not_decode(tmp_path):
    write_overlays(tmp_path / "frost")
    for name in ("frost1.png", "frost4.jpg"):
        path = tmp_path / "frost" / name
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(
        ValueError, match=r"frost cannot decode frost1.png \(.*frost4.jpg \(.*again"
    ):
        corrupt(made_images(), "frost", 1, overlays=tmp_path / "frost")


def test_frost_on_the_published_overlays(shared):
    folder = shared / "data" / "frost"
    # With this seed the three images get the three PNG files, which every decoder agrees on.
    images = made_images(count=3)
    for constants, crc in (("cifar10", 0x55613492), ("imagenet", 0xA00FB897)):
        frosted = corrupt(images, "frost", 5, seed=9, constants=constants, overlays=folder)
        assert zlib.crc32(frosted.tobytes()) == crc
    overlays = read_overlays(folder)
    assert [each.shape for each in overlays] == [
        (600, 900, 3),
        (315, 560, 3),
        (315, 560, 3),
        (350, 527, 3),
        (495, 660, 3),
    ]
    # Red is the first channel: the fourth photograph is blue.
    assert overlays[3].mean(axis=(0, 1)).argmax() == 2
