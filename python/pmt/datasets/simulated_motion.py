"""Windows of a simulated motion sensor: a small data set that holds no images."""

import math
from dataclasses import dataclass

import numpy as np

from pmt._util.arrays import DoubleArray
from pmt._util.checks import SPLITS, SplitName, check_type, checked_range, checked_word
from pmt.datasets.dataset import Dataset

STEPS, RATE = 128, 50.0  # of a window: samples, and samples per second
CHANNELS = 6
_NOISE = 0.05


@dataclass(frozen=True)
class _Activity:
    """A periodic motion: cadence in Hz, accelerations in g, swing in rad/s."""

    cadence: tuple[float, float]
    bounce: float
    push: float
    harmonic: float
    swing: float


ACTIVITIES = {
    "rest": _Activity((0.1, 0.4), 0.01, 0.01, 0.0, 0.05),
    "walk": _Activity((1.6, 2.1), 0.25, 0.15, 0.3, 1.2),
    "run": _Activity((2.4, 3.2), 0.9, 0.4, 0.4, 2.6),
    "stairs": _Activity((1.2, 1.7), 0.35, 0.08, 0.8, 0.7),
    "cycle": _Activity((0.9, 1.5), 0.06, 0.12, 0.1, 1.9),
}


_MOST_WINDOWS = 10**6


def simulated_motion(
    split: SplitName = "train", *, windows: int = 600, drift: float = 0.0, seed: int = 0
) -> Dataset:
    """Simulate an accelerometer and a gyroscope worn by somebody who moves.

    A window lasts 2.56 seconds: 128 samples of three accelerations (g) and three angular rates
    (rad/s). Each has a cadence, an amplitude, a phase and a tilt of the sensor of its own, drawn
    within the range of its activity, a second harmonic, and white noise of 0.05.

    Parameters
    ----------
    split : {"train", "test"}
        "train" or "test": different windows.
    windows : int
        Number of windows, 1 or more; the five activities take turns.
    drift : float
        0 for a sensor that is worn as it should be. 1 for one that is turned by 60 degrees, whose
        accelerations have an offset of 0.2 g and whose gains are off by up to 30 %; other values
        in proportion. All windows drift alike.
    seed : int
        0 or more.

    Returns
    -------
    Dataset
        float32, shape (windows, 1, 128, 6).

    Raises
    ------
    TypeError
        If `windows` or `seed` is not an integer.
    ValueError
        If `split` is unknown, there is no window, the seed is negative, or the drift is not
        finite.
    """
    place = SPLITS.index(checked_word("split", split, SPLITS))
    windows = checked_range("windows", windows, 1, _MOST_WINDOWS)
    check_type("drift", drift, (int, float, np.number), "a finite number, for example 1.0")
    if not math.isfinite(drift):
        raise ValueError(f"drift={drift} must be a finite number, for example 1.0")
    stream = np.random.SeedSequence(checked_range("seed", seed, 0), spawn_key=(place,))
    generator = np.random.Generator(np.random.PCG64(stream))
    labels = np.arange(windows) % len(ACTIVITIES)
    kinds = list(ACTIVITIES.values())
    signals = np.stack([_window(kinds[label], generator) for label in labels])
    signals = _drifted(signals, drift) + generator.normal(0.0, _NOISE, signals.shape)
    return Dataset.from_arrays(signals, labels, class_names=list(ACTIVITIES), name="motion")


def _window(activity: _Activity, generator: np.random.Generator) -> DoubleArray:
    """Return one window without noise, (128, 6)."""
    time = np.arange(STEPS) / RATE
    cadence = generator.uniform(*activity.cadence)
    strength = generator.uniform(0.7, 1.3)
    angle = 2.0 * np.pi * (cadence * time + generator.uniform())
    wave = np.sin(angle) + activity.harmonic * np.sin(2.0 * angle)
    stride = np.sin(angle / 2.0)  # left and right take turns
    signal = np.zeros((STEPS, CHANNELS))
    signal[:, 0] = strength * activity.push * np.cos(angle)
    signal[:, 1] = strength * activity.push * 0.5 * stride
    signal[:, 2] = 1.0 + strength * activity.bounce * wave
    signal[:, 3] = strength * activity.swing * 0.3 * np.cos(angle)
    signal[:, 4] = strength * activity.swing * stride
    signal[:, 5] = strength * activity.swing * 0.2 * wave
    return _turned(signal, generator.normal(0.0, math.radians(8.0)))


def _turned(signal: DoubleArray, angle: float) -> DoubleArray:
    """Turn both sensors about the axis that points sideways."""
    turn = np.eye(3)
    turn[0, 0] = turn[2, 2] = math.cos(angle)
    turn[0, 2], turn[2, 0] = math.sin(angle), -math.sin(angle)
    parts = signal.reshape(*signal.shape[:-1], 2, 3) @ turn.T
    return parts.reshape(signal.shape)


def _drifted(signals: DoubleArray, drift: float) -> DoubleArray:
    gains = 1.0 + drift * np.array([0.3, -0.2, -0.3, 0.2, -0.3, 0.3])
    offsets = drift * np.array([0.2, -0.2, 0.2, 0.0, 0.0, 0.0])
    return _turned(signals, drift * math.radians(60.0)) * gains + offsets
