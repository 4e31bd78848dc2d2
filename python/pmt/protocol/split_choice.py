"""The images of an experiment as one asks for them, before any is read."""

from __future__ import annotations

from dataclasses import dataclass

from pmt._util.option_error import OptionError
from pmt.model import Model
from pmt.protocol.data_source import DataSource
from pmt.protocol.splitting import PROTOCOLS, Split, split

__all__ = ["HELD_OUT", "IMAGES", "SplitChoice"]

IMAGES, HELD_OUT = 1100, 100


@dataclass(frozen=True)
class SplitChoice:
    """A protocol and its numbers, see :func:`pmt.protocol.split`.

    Parameters
    ----------
    protocol : {"default", "paper"}
        The protocol.
    images : int, optional
        Training images in all, 2 or more; by default 1,100, or all where there are fewer. The
        paper's protocol fixes them.
    held_out : int, optional
        How many of them are held out to choose on, 0 or more; by default 100. Likewise fixed.
    seed : int
        Seed of the choice, 0 or more.
    """

    protocol: str = "default"
    images: int | None = None
    held_out: int | None = None
    seed: int = 0

    def of(self, source: DataSource, model: Model) -> Split:
        """Choose the images from a data source, at the size of the model's input.

        Raises
        ------
        ValueError, FileNotFoundError
            As :func:`pmt.protocol.split`; or if numbers are given that the protocol fixes.
        """
        if self.protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise OptionError("protocol", f" {self.protocol!r} is unknown; choose one of {known}")
        test = source.pool("test", model)
        if self.protocol == "paper":
            for name in ("images", "held_out"):
                if getattr(self, name) is not None:
                    raise OptionError(name, " is fixed by ", "protocol", " paper; leave it out")
            return split(self.protocol, None, test, seed=self.seed)
        train = source.pool("train", model)
        images = min(IMAGES, len(train)) if self.images is None else self.images
        held_out = HELD_OUT if self.held_out is None else self.held_out
        return split(self.protocol, train, test, seed=self.seed, images=images, held_out=held_out)
