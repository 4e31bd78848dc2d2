"""Spatter: its steps against OpenCV's own results and slow definitions, and the two liquids."""

import numpy as np
import pytest
from corruption_inputs import constants_of
from scipy import ndimage

from pmt.corruptions import corrupt
from pmt.corruptions.catalog import canny_edges, chamfer_distance
from pmt.corruptions.weather import RELIEF, Spatter, _equalized, spatter


def drawn(edges: np.ndarray) -> list[str]:
    return ["".join(".#"[int(edge)] for edge in row) for row in edges]


# OpenCV's Canny of this layer with the thresholds 50 and 150. With 50 and 51 the last
# row has three pixels more: they are not connected with a strong edge.
WEAK_AND_STRONG = [
    ".........#.##...........",
    "..........##....##......",
    ".........##...###...#...",
    ".......###...##...##..##",
    "......##....##...##..##.",
    ".....##....##...##..##..",
    "...###...###..###..#...#",
    "..##....##...##...#..##.",
    ".##....##...##..##..#...",
    "##...###...##..##..#..##",
    "...###...###..##..#..#..",
    "..##....##...##..#..#...",
]


def test_edges_are_those_of_opencv():
    y, x = np.indices((12, 24))
    waves = np.abs((x * x * 3 + y * y * 5 + x * y * 7) // 3 % 400 - 200)
    layer = (waves * (24 - x + y) // 60).astype(np.uint8)
    # Upside down and alone in the batch or not: the other images do not matter.
    batch = np.stack([layer, np.zeros_like(layer), layer])
    edges = canny_edges(batch, 50, 150, ndimage)
    assert drawn(edges[0]) == drawn(edges[2]) == WEAK_AND_STRONG
    assert not edges[1].any()
    weak = canny_edges(batch[:1], 50, 51, ndimage)[0]
    assert drawn(weak) == [*WEAK_AND_STRONG[:-1], "#.##....##...##..#..#..#"]


def test_the_edge_of_a_disk_is_one_pixel_wide():
    y, x = np.indices((11, 11))
    layer = np.where((x - 5) ** 2 + (y - 5) ** 2 < 14, 200, 0).astype(np.uint8)
    assert drawn(canny_edges(layer[None], 50, 150, ndimage)[0]) == [
        "...........",
        "....###....",
        "..##...##..",
        "..#.....#..",
        ".#......#..",
        ".#......#..",
        ".#......#..",
        "..#.....#..",
        "..#######..",
        "...........",
        "...........",
    ]


def test_distances_are_those_of_opencv():
    marked = np.zeros((2, 5, 6), bool)
    marked[0, 1, 1] = marked[0, 4, 5] = True
    distance = chamfer_distance(marked)
    expected = [
        [1.4, 1.0, 1.4, 2.1969, 3.1969, 4.0],
        [1.0, 0.0, 1.0, 2.0, 3.0, 3.0],
        [1.4, 1.0, 1.4, 2.1969, 2.1969, 2.0],
        [2.1969, 2.0, 2.1969, 2.1969, 1.4, 1.0],
        [3.1969, 3.0, 3.0, 2.0, 1.0, 0.0],
    ]
    np.testing.assert_allclose(distance[0], expected, atol=2e-5)
    assert distance[1].min() > 8000


@pytest.mark.parametrize("shape", [(9, 14), (1, 5), (6, 1), (23, 23)])
def test_distances_are_the_shortest_chamfer_ways(shape):
    marked = np.random.default_rng(1).random((4, *shape)) < 0.06
    marked[:, 0, 0] = True
    distance = chamfer_distance(marked)
    for image, found in zip(marked, distance, strict=True):
        marks = np.argwhere(image)
        for y, x in np.ndindex(shape):
            far, near = np.sort(np.abs(marks - [y, x]), axis=1)[:, ::-1].T
            # On the way, knight's steps and, nearer to the axis, straight or else diagonal ones.
            flat = 2.1969 * near + far - 2 * near
            steep = 2.1969 * (far - near) + 1.4 * (2 * near - far)
            ways = np.where(far >= 2 * near, flat, steep)
            assert found[y, x] == pytest.approx(ways.min(), abs=1e-3)


def test_levels_are_spread_as_by_opencv():
    layers = np.array([[[3, 3, 3, 3], [3, 5, 5, 9], [9, 9, 20, 20]], [[20] * 4] * 3], np.uint8)
    spread = _equalized(layers)
    assert spread[0].tolist() == [[0, 0, 0, 0], [0, 73, 73, 182], [182, 182, 255, 255]]
    assert spread[1].tolist() == [[20] * 4] * 3


def test_the_relief_is_that_of_opencv():
    layers = np.array([[[10, 200, 30, 40], [50, 60, 70, 250], [90, 100, 0, 120]]])
    relief = np.clip(ndimage.correlate(layers, RELIEF, mode="mirror"), 0, 255)
    assert relief[0].tolist() == [[10, 255, 250, 40], [0, 0, 70, 255], [90, 50, 255, 120]]


def liquid(constants: Spatter, seed: int, shape: tuple[int, int] = (32, 32)) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(shape)
    smooth = ndimage.gaussian_filter(
        constants.mean + constants.deviation * noise, constants.smoothness, mode="nearest"
    )
    return np.where(smooth < constants.threshold, 0.0, smooth)


@pytest.mark.parametrize("constants", constants_of("spatter"))
def test_liquid_is_where_the_noise_is_high(constants):
    images = np.full((6, 32, 32, 3), 100, np.uint8)
    result = spatter(images, constants, [np.random.default_rng(seed) for seed in range(6)])
    changed = np.abs(result - 100 / 255).max(axis=3) > 1e-9
    for seed, change in enumerate(changed):
        wet = liquid(constants, seed) > 0
        if constants.is_mud:
            splashes = ndimage.gaussian_filter(
                wet.astype(float), constants.strength, mode="nearest"
            )
            np.testing.assert_array_equal(change, splashes >= 0.8)
        else:
            assert not (change & ~wet).any()
            # The dark side of a drop is not changed.
            assert change[wet].mean() > 0.25
    assert changed.any()


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_water_adds_pale_turquoise(severity):
    wet = corrupt(np.zeros((30, 32, 32, 3), np.uint8), "spatter", severity).astype(np.int64)
    # In each image the brightest drop adds half of (175, 238, 238).
    assert (wet.max(axis=(1, 2)) == [87, 119, 119]).all()
    np.testing.assert_array_equal(wet[..., 1], wet[..., 2])
    assert (np.abs(wet[..., 0] - wet[..., 1] * 175 / 238) <= 1).all()


@pytest.mark.parametrize("severity", [4, 5])
def test_mud_covers_with_brown(severity):
    muddy = corrupt(np.full((30, 32, 32, 3), 255, np.uint8), "spatter", severity)
    covered = muddy[(muddy < 255).all(axis=3)].astype(np.int64)
    # From 80 % to all of it is mud, and the rest white.
    assert (covered <= [0.8 * 63 + 51, 0.8 * 42 + 51, 0.8 * 20 + 51]).all()
    assert (covered >= [62, 41, 19]).all()
    assert 0.005 < len(covered) / 30 / 1024 < 0.08


def test_one_channel_gets_the_luma_of_the_liquid():
    gray = np.zeros((10, 32, 32, 1), np.uint8)
    color = np.zeros((10, 32, 32, 3), np.uint8)
    for severity in (2, 5):
        wet = corrupt(gray, "spatter", severity)[..., 0]
        expected = corrupt(color, "spatter", severity) @ np.array([0.299, 0.587, 0.114])
        assert np.abs(wet - expected).max() < 2


def test_dry_images_stay():
    dry = Spatter(0.0, 0.01, 1.0, 0.9, 0.5, is_mud=False)
    images = np.full((3, 9, 9, 3), 40, np.uint8)
    for constants in (dry, dry._replace(is_mud=True)):
        generators = [np.random.default_rng(seed) for seed in range(3)]
        np.testing.assert_array_equal(spatter(images, constants, generators), images / 255.0)
