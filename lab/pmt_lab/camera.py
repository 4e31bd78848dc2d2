"""Faults of a camera, simulated where they arise: before its image is gamma-coded.

An image is taken back to linear light (IEC 61966-2-1) and seen by a sensor behind an RGGB filter
mosaic (Bayer, US patent 3971065): a pixel collects electrons of one color. A gray image has no
mosaic. The number of electrons is Poisson, read noise is Gaussian (Foi et al. 2008,
doi:10.1109/TIP.2008.2001399; EMVA standard 1288), each pixel has its own gain and offset, the same
in every image (Healey, Kondepudy 1994, doi:10.1109/34.276126), rows have one in each image, and
some pixels are stuck. The mosaic is filled by bilinear interpolation, white balance follows, and 8
bits of sRGB. None of this is one of the corruptions of CIFAR-10-C.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.ndimage import convolve, convolve1d

Array = npt.NDArray[np.float64]

_COLOR = np.array([[0, 1], [1, 2]])  # of the mosaic's pixels: red, green; green, blue
_AROUND = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]])


def decoded(pixels: npt.NDArray[np.uint8]) -> Array:
    """Return linear light, 0..1, of sRGB pixels."""
    value = pixels / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def encoded(light: Array) -> npt.NDArray[np.uint8]:
    """Return sRGB pixels of linear light, clipped to 0..1."""
    value = np.clip(light, 0.0, 1.0)
    value = np.where(value <= 0.0031308, 12.92 * value, 1.055 * value ** (1 / 2.4) - 0.055)
    return np.rint(255.0 * value).astype(np.uint8)


@dataclass(frozen=True)
class Camera:
    """A camera and its light.

    Parameters
    ----------
    electrons : float
        That a pixel collects where the scene is white.
    read_noise : float
        Standard deviation in electrons.
    exposure : float
        Factor of the light; above 1 white is cut.
    gain_spread, offset_spread : float
        Standard deviations of the pixels' own gains (around 1) and offsets (of white).
    row_noise : float
        Standard deviation of a row's offset, of white, in each image.
    stuck : float
        Part of the pixels that are always black or white.
    vignetting : float
        Angle to the corner in degrees: light falls by the fourth power of its cosine.
    gains : (float, float, float)
        Of red, green and blue: a white balance for another light.
    motion : int
        Pixels that the scene moves along a row meanwhile, at least 1.
    """

    electrons: float = 20_000.0
    read_noise: float = 2.0
    exposure: float = 1.0
    gain_spread: float = 0.0
    offset_spread: float = 0.0
    row_noise: float = 0.0
    stuck: float = 0.0
    vignetting: float = 0.0
    gains: tuple[float, float, float] = (1.0, 1.0, 1.0)
    motion: int = 1

    def take(self, images: npt.NDArray[np.uint8], seed: int) -> npt.NDArray[np.uint8]:
        """Return images (N, height, width, 3 or 1) as the camera sees them.

        ``seed`` is that of the noise; the pixels stay the same.
        """
        height, width = images.shape[1:3]
        light = self.exposure * decoded(images)
        if self.motion > 1:
            path = np.full(self.motion, 1.0 / self.motion)
            light = convolve1d(light, path, axis=2, mode="nearest")
        light = light * self._falloff(height, width)[:, :, np.newaxis]
        if light.shape[3] == 1:
            return encoded(self._read(light[..., 0], seed)[..., np.newaxis])
        colors = np.tile(_COLOR, (height // 2 + 1, width // 2 + 1))[:height, :width]
        seen = np.take_along_axis(light, colors[np.newaxis, :, :, np.newaxis], axis=3)[..., 0]
        full = _demosaiced(self._read(seen, seed), colors)
        return encoded(full * np.array(self.gains))

    def _falloff(self, height: int, width: int) -> Array:
        y, x = np.mgrid[:height, :width]
        radius = np.hypot(y - (height - 1) / 2, x - (width - 1) / 2)
        tangent = np.tan(np.radians(self.vignetting)) * radius / max(radius.max(), 1e-9)
        return np.asarray((1 + tangent**2) ** -2, dtype=np.float64)

    def _read(self, seen: Array, seed: int) -> Array:
        """Return the sensor's reading of light (N, height, width), in parts of white."""
        pixels, noise = np.random.default_rng(0), np.random.default_rng(seed)
        shape = seen.shape[1:]
        gain = np.maximum(1 + self.gain_spread * pixels.standard_normal(shape), 0)
        offset = self.offset_spread * pixels.standard_normal(shape)
        fate = pixels.random(shape)
        counted = noise.poisson(self.electrons * np.minimum(seen, 1.0) * gain).astype(np.float64)
        counted += self.read_noise * noise.standard_normal(seen.shape)
        value = counted / self.electrons + offset
        value += self.row_noise * noise.standard_normal((*seen.shape[:2], 1))
        value = np.where(fate < self.stuck / 2, 0.0, value)
        return np.clip(np.where(fate > 1 - self.stuck / 2, 1.0, value), 0.0, 1.0)


def _demosaiced(seen: Array, colors: npt.NDArray[np.int64]) -> Array:
    """Return the three colors of each pixel: the weighted mean of those around that have it."""
    planes = []
    for color in range(3):
        has = (colors == color).astype(np.float64)
        weights = convolve(has, _AROUND, mode="mirror")
        planes.append(convolve(seen * has, _AROUND[np.newaxis], mode="mirror") / weights)
        planes[-1] = np.where(has > 0, seen, planes[-1])
    return np.stack(planes, axis=-1)


_PLAIN = Camera()
FAULTS = {
    "none": _PLAIN,
    "low light": replace(_PLAIN, electrons=60.0, read_noise=3.0),
    "dusk": replace(_PLAIN, electrons=250.0, read_noise=3.0),
    "row noise": replace(_PLAIN, row_noise=0.06),
    "stuck pixels": replace(_PLAIN, stuck=0.04),
    "fixed pattern": replace(_PLAIN, gain_spread=0.25, offset_spread=0.02),
    "vignetting": replace(_PLAIN, vignetting=45.0),
    "white balance": replace(_PLAIN, gains=(1.5, 1.0, 0.5)),
    "over-exposure": replace(_PLAIN, exposure=3.0),
    "under-exposure": replace(_PLAIN, exposure=0.08, electrons=5000.0),
    "motion": replace(_PLAIN, motion=6),
    "a cheap camera": replace(
        _PLAIN, electrons=400.0, read_noise=3.0, gain_spread=0.08, row_noise=0.01, stuck=0.005
    ),
}
