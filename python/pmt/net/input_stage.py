"""The input stage of a model: filters that a camera's image passes before the network."""

from dataclasses import dataclass, field
from typing import Any

from pmt import _core
from pmt._util.checks import checked_range, checked_word, kind_of
from pmt._util.text import counted

FILTERS: tuple[str, ...] = tuple(_core.FILTER_STRENGTHS)
NOISE_MODELS = _core.NOISE_MODELS
_WITH_NOISE = "dct_shrinkage"


@dataclass(frozen=True)
class Filter:
    """A filter on uint8 pixels at the image's own size.

    Parameters
    ----------
    name : str
        - ``switching_median``: a value that is an extreme of its 3x3 window becomes the window's
          median (Sun, Neuvo 1994);
        - ``dct_shrinkage``: the coefficients of all overlapping 4x4 blocks are shrunk by the
          non-negative garrote, and the blocks averaged (Yaroslavsky et al. 2001; Gao 1998);
        - ``sharpening``: the difference to the binomial mean of a 3x3 window is enlarged;
        - ``standardization``: each channel is scaled about its mean;
        - ``tone_curve``: pixels become brighter or darker, black and white stay.
    strength : int
        ``switching_median``: levels, 0..254, that an extreme value may be away from the median;
        ``dct_shrinkage``: levels, 1..255, below which a coefficient becomes 0; ``sharpening``:
        sixteenths of the difference that are added, 1..255; ``standardization``: a channel's
        standard deviation in levels, 1..127; ``tone_curve``: sixteenths of p (255 - p) / 255 that
        are added to a pixel p, -15..15.
    noise : {"constant", "square_root", "proportional"}
        How the threshold of ``dct_shrinkage`` grows with the mean of a block, from its strength at
        128: as read noise, photon noise or speckle does.

    Raises
    ------
    ValueError, TypeError
        If there is no such filter, or a parameter is out of range.
    """

    name: str
    strength: int
    noise: str = "constant"

    def __post_init__(self) -> None:
        """Check the parameters."""
        checked_word("name", self.name, FILTERS)
        low, high = _core.FILTER_STRENGTHS[self.name]
        strength = checked_range(f"strength of {self.name}", self.strength, low, high)
        if strength == 0 and low < 0:
            raise ValueError(f"strength of {self.name}=0 changes nothing: leave the filter out")
        object.__setattr__(self, "strength", strength)
        models = NOISE_MODELS if self.name == _WITH_NOISE else NOISE_MODELS[:1]
        if not isinstance(self.noise, str) or self.noise not in models:
            raise ValueError(f"noise={self.noise!r} of {self.name}: use {' or '.join(models)}")

    def __str__(self) -> str:
        """Return the filter in a few words."""
        noise = f" {self.noise}" if self.name == _WITH_NOISE else ""
        return f"{self.name} {self.strength}{noise}"


@dataclass(frozen=True)
class InputStage:
    """Filters that images pass before a network, and their size, from which they are resampled.

    Parameters
    ----------
    size : (int, int)
        Height and width of the images, each 1..4096.
    filters : tuple of Filter
        At most 8, in their order.

    Raises
    ------
    ValueError, TypeError
        If a size is out of range, there are too many filters, or images are too small for one.
    """

    size: tuple[int, int]
    filters: tuple[Filter, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check sizes and filters."""
        if not isinstance(self.size, tuple | list) or len(self.size) != 2:
            raise TypeError(f"size={self.size!r} must be (height, width)")
        height, width = self.size
        sides = {"height": height, "width": width}
        size = [checked_range(name, side, 1, _core.LARGEST_SIDE) for name, side in sides.items()]
        object.__setattr__(self, "size", tuple(size))
        is_filters = isinstance(self.filters, tuple | list)
        if not is_filters or not all(isinstance(one, Filter) for one in self.filters):
            raise TypeError(
                f"filters is {kind_of(self.filters)}: must be a tuple of pmt.Filter; a single one "
                "is given as (filter,)"
            )
        object.__setattr__(self, "filters", tuple(self.filters))
        if len(self.filters) > _core.MOST_FILTERS:
            raise ValueError(
                f"filters: there are {len(self.filters)}, at most {_core.MOST_FILTERS} go into one "
                "input stage"
            )
        if not all(fits(one, self.size) for one in self.filters):
            raise ValueError(
                f"size={self.size}: {_WITH_NOISE} needs images of {_core.SHRINKAGE_BLOCK} rows and "
                "columns or more"
            )

    def __str__(self) -> str:
        """Return the stage in a few words."""
        filters = ", ".join(str(one) for one in self.filters)
        return filters or "no filter"

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for a report."""
        return {"size": list(self.size), "filters": [str(one) for one in self.filters]}


def fits(one: Filter, size: tuple[int, int]) -> bool:
    """Whether images of a height and width are large enough for a filter."""
    return one.name != _WITH_NOISE or min(size) >= _core.SHRINKAGE_BLOCK


def check_stage(stage: InputStage, channels: int) -> None:
    """Raise ValueError if a network has too many input channels for an input stage."""
    if channels > _core.MOST_STAGE_CHANNELS:
        raise ValueError(
            f"input stage: the network's input has {counted(channels, 'channel')}, an image at "
            f"most {_core.MOST_STAGE_CHANNELS}; use the network without a stage"
        )
