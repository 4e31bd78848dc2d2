"""The simulated camera: what it adds is what its parameters say."""

import numpy as np
import pytest

from pmt_lab.camera import FAULTS, Camera, decoded, encoded


def flat(level: int, channels: int = 1, count: int = 200) -> np.ndarray:
    return np.full((count, 8, 8, channels), level, np.uint8)


def light(camera: Camera, level: int) -> np.ndarray:
    return decoded(camera.take(flat(level), 1))[..., 0]


def test_gamma_goes_and_comes():
    pixels = np.arange(256, dtype=np.uint8)
    assert (encoded(decoded(pixels)) == pixels).all()
    assert decoded(np.array([188], np.uint8))[0] == pytest.approx(0.503, abs=0.001)


def test_a_camera_without_faults_changes_little():
    for channels in (1, 3):
        seen = Camera().take(flat(128, channels), 0).astype(int)
        assert abs(seen.mean() - 128) < 0.2
        assert seen.std() < 2


def test_electrons_are_poisson_and_read_noise_is_added():
    for level, electrons in ((128, 100.0), (188, 1000.0)):
        white = decoded(np.array([level], np.uint8))[0]
        found = light(Camera(electrons=electrons, read_noise=4.0), level)
        assert found.mean() == pytest.approx(white, rel=0.02)
        variance = (electrons * white + 16) / electrons**2
        assert found.var() == pytest.approx(variance, rel=0.1)


def test_a_pattern_is_fixed_a_row_is_not_and_stuck_pixels_are_black_or_white():
    bright = Camera(electrons=1e6, read_noise=0.0)
    pattern = light(Camera(**{**vars(bright), "gain_spread": 0.2}), 150)
    assert pattern.std(axis=0).max() < 0.01 < pattern.mean(axis=0).std()
    rows = light(Camera(**{**vars(bright), "row_noise": 0.05}), 150)
    assert rows.std(axis=2).max() < 0.01 < rows.mean(axis=2).std()
    stuck = Camera(**{**vars(bright), "stuck": 0.25}).take(flat(150), 1)
    share = np.isin(stuck, (0, 255)).mean()
    assert 0.1 < share < 0.4
    assert (stuck.std(axis=0) < 2).all()  # the same in every image


def test_light_falls_to_the_corners_moves_and_has_a_color():
    seen = light(FAULTS["vignetting"], 200)[0]
    center = decoded(np.array([200], np.uint8))[0]
    assert seen[0, 0] == pytest.approx(center * np.cos(np.pi / 4) ** 4, rel=0.05)
    edge = np.zeros((1, 8, 8, 1), np.uint8)
    edge[:, :, 4:] = 255
    moved = decoded(FAULTS["motion"].take(edge, 0))[0, 4, :, 0]
    assert (np.diff(moved) > 0.1).sum() == 6
    red, green, blue = FAULTS["white balance"].take(flat(128, 3), 0).mean(axis=(0, 1, 2))
    assert red > green + 15 > blue + 45


def test_the_noise_has_a_seed():
    first, again, other = (FAULTS["low light"].take(flat(128, 3), seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
