"""One image file or array, turned upright, cropped and resized to a network's input."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pmt._util.arrays import Uint8Array
from pmt._util.checks import plain_number
from pmt._util.extras import import_extra

Pixels = Uint8Array
GRAY_MODES = ("1", "L", "LA", "La")
WIDE_MODES = ("I", "F")
MOST_CHANNELS = 4  # of an array that Pillow resizes
ORIENTATION = 0x0112
# EXIF orientations 5 to 8 are turned by a quarter: height and width change places.
QUARTER_TURNS = range(5, 9)
# The turn that puts each EXIF orientation upright (EXIF 2.3, table 6).
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels


@dataclass(frozen=True)
class Fit:
    """The fit of an image to the size of a network's input, height and width; None keeps its own.

    Without `crop` the whole image is stretched. A number above 0, at most 1, takes the largest
    centered region of the shape of `size`, times this share of its sides: 1 keeps all that fits,
    0.875 is the usual evaluation of ImageNet networks ("resize to 256, crop 224").
    """

    size: tuple[int, int] | None = None
    crop: float | None = None

    def __post_init__(self) -> None:
        """Check `crop`."""
        if self.crop is None:
            return
        object.__setattr__(self, "crop", plain_number(self.crop))
        if isinstance(self.crop, bool) or not isinstance(self.crop, int | float):
            raise TypeError(f"crop={self.crop!r} must be a number, above 0 and at most 1")
        if not 0.0 < self.crop <= 1.0:
            raise ValueError(f"crop={self.crop!r} must be above 0 and at most 1")
        if self.size is None:
            raise ValueError(f"crop={self.crop}: needs a size to crop to, as in size=128")

    def region(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of a width and height that is kept."""
        if self.crop is None or self.size is None:
            return 0, 0, *size
        scale = self.crop * min(size[1] / self.size[0], size[0] / self.size[1])
        height, width = scale * self.size[0], scale * self.size[1]
        x, y = (size[0] - width) / 2, (size[1] - height) / 2
        return x, y, x + width, y + height


class UndecodableError(Exception):
    """An image cannot be used; the two arguments are the problem and the remedy."""


def pillow() -> ModuleType:
    """Import Pillow's Image module, or say how to install it."""
    module: ModuleType = import_extra(
        "PIL.Image", "decoding and resizing images needs Pillow", "data"
    )
    return module


def decoded(path: Path, fit: Fit) -> Uint8Array:
    """Decode a file, turn it as its EXIF data says, crop and resize it.

    The result is uint8 of shape (H, W, C), C = 1 or 3. Palettes, CMYK and transparency become RGB
    (transparency is dropped), black and white and gray stay one channel. The first frame stands
    for an animation. The format is the file's, whatever its suffix says. UndecodableError tells of
    a file that cannot be used.
    """
    module = pillow()
    try:
        with module.open(path) as picture:
            _refuse(module, picture)
            return _upright(module, picture, fit)
    except UndecodableError:
        raise
    except FileNotFoundError:
        raise UndecodableError("no such file", "add it, or remove it from the list") from None
    except (module.DecompressionBombError, module.DecompressionBombWarning):
        raise _too_large(module) from None
    # A damaged file makes Pillow raise nearly anything: all of it means the same to the user.
    except Exception as error:
        reason = str(error).replace(str(path), path.name) or type(error).__name__
        raise UndecodableError(
            f"cannot be decoded ({reason})", "replace or remove this file"
        ) from None


def fitted_picture(picture: Any, fit: Fit) -> Uint8Array:
    """Return the pixels of a picture of Pillow, as `decoded` returns those of a file."""
    return _upright(pillow(), picture, fit)


def upright_size(path: Path) -> tuple[int, int] | None:
    """Return height and width of a file's upright image; None where its head cannot be read."""
    module = pillow()
    try:
        with module.open(path) as picture:
            # Asked for EXIF data that may stand after the pixels, Pillow decodes a whole PNG.
            decodes = picture.format == "PNG" and "exif" not in picture.info
            width, height = picture.size if decodes else _upright_size(picture)
            return height, width
    except Exception:  # as in `decoded`, which says what is wrong
        return None


def is_colored(path: Path) -> bool:
    """Whether a file's image has more than a gray channel; not where its head cannot be read."""
    try:
        with pillow().open(path) as picture:
            return picture.mode not in GRAY_MODES
    except Exception:  # as in `decoded`, which says what is wrong
        return False


def resized(images: Uint8Array, fit: Fit, source: str = "the array") -> Uint8Array:
    """Crop and resize images in memory as :func:`decoded` does.

    They are uint8 of shape (N, H, W, C); the result is read-only. `source` names them in errors.
    """
    if fit.size is None or (images.shape[1:3] == fit.size and fit.crop in (None, 1.0)):
        return images
    if images.shape[3] > MOST_CHANNELS:
        raise ValueError(
            f"{source} has {images.shape[3]} channels: images of at most {MOST_CHANNELS} are "
            "resized; resample the arrays before"
        )
    module = pillow()
    result = np.empty((len(images), *fit.size, images.shape[3]), np.uint8)
    for target, image in zip(result, images, strict=True):
        picture = to_picture(module, image)
        region = fit.region(picture.size)
        target[...] = _fitted(module, picture, fit, region)
    result.flags.writeable = False
    return result


def _refuse(module: ModuleType, picture: Any) -> None:
    # Pillow only warns between its limit and twice of it.
    limit = module.MAX_IMAGE_PIXELS
    if limit is not None and picture.width * picture.height > limit:
        raise _too_large(module)
    if picture.mode.split(";")[0] in WIDE_MODES:
        raise UndecodableError("has more than 8 bits per channel", "convert it to 8 bits")


def _too_large(module: ModuleType) -> UndecodableError:
    return UndecodableError(
        f"has more than {module.MAX_IMAGE_PIXELS:,} pixels, which may be a decompression bomb",
        "remove or shrink it, or raise PIL.Image.MAX_IMAGE_PIXELS if it is meant to be so large",
    )


def _upright(module: ModuleType, picture: Any, fit: Fit) -> Uint8Array:
    size = _upright_size(picture)
    if picture.format == "JPEG" and fit.size is not None:
        _shrink_while_decoding(picture, fit, fit.region(size))
    picture.load()
    # Asked again: for some formats Pillow has by now turned the image itself.
    turn = _TURNS.get(_orientation(picture))
    converted = picture.convert("L" if picture.mode in GRAY_MODES else "RGB")
    if turn is not None:
        converted = converted.transpose(module.Transpose[turn])
    if picture.format != "JPEG":
        size = converted.size
    left, top, right, bottom = fit.region(size)
    x, y = converted.width / size[0], converted.height / size[1]
    return _fitted(module, converted, fit, (left * x, top * y, right * x, bottom * y))


def _orientation(picture: Any) -> int:
    try:
        return int(picture.getexif().get(ORIENTATION, 1))
    except Exception:  # damaged EXIF data is no reason to refuse the pixels
        return 1


def _upright_size(picture: Any) -> tuple[int, int]:
    width, height = picture.size
    return (height, width) if _orientation(picture) in QUARTER_TURNS else (width, height)


def _shrink_while_decoding(picture: Any, fit: Fit, region: Box) -> None:
    """Let the JPEG decoder halve the image, nearly for free; twice the size wanted is left."""
    assert fit.size is not None
    left, top, right, bottom = region
    shrink = min((bottom - top) / fit.size[0], (right - left) / fit.size[1]) / 2
    if shrink >= 2:
        picture.draft(None, tuple(math.ceil(side / shrink) for side in picture.size))


def _fitted(module: ModuleType, picture: Any, fit: Fit, region: Box) -> Uint8Array:
    whole = region == (0, 0, *picture.size)
    if fit.size is not None and not (whole and picture.size == fit.size[::-1]):
        picture = _resampled(picture, fit.size, region, module.Resampling.BILINEAR)
    return to_pixels(picture)


def _resampled(picture: Any, size: tuple[int, int], region: Box, method: Any) -> Any:
    """Resample rows first, then columns, as an input stage; Pillow's order depends on the sizes."""
    left, top, right, bottom = region
    rows = picture.resize((size[1], picture.height), method, (left, 0, right, picture.height))
    return rows.resize(size[::-1], method, (0, top, size[1], bottom))


def to_picture(module: ModuleType, pixels: Pixels) -> Any:
    """Make a picture of uint8 ``(H, W, C)``, C = 1 or 3; `module` is ``PIL.Image``."""
    return module.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def to_pixels(picture: Any) -> Pixels:
    """Return the uint8 pixels of a picture, ``(H, W, C)``."""
    pixels = np.asarray(picture, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels
