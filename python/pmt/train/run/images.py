"""The images of a run, and which of them train and choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pmt.datasets import Dataset
from pmt.model import Model
from pmt.train.run.config import contents_of
from pmt.train.run.keep_best import part

if TYPE_CHECKING:
    from pmt.train.trainer import Trainer

__all__ = ["Images"]


@dataclass(frozen=True)
class Images:
    """The images of a run: those that it was given, and the parts that train and choose."""

    data: Dataset
    valid: Dataset | None
    given: Dataset | None  # to choose on
    train: Dataset
    held_out: Dataset | None

    @classmethod
    def of(
        cls, trainer: Trainer, data: Dataset, valid: Dataset | None, given: Dataset | None
    ) -> Images:
        """Hold images out, unless some are given."""
        count = 0 if given is not None else trainer.held_out_images(data)
        if count == 0:
            return cls(data, valid, given, data, given)
        return cls(data, valid, given, *part(data, count, trainer.options.seed))

    @property
    def were_parted(self) -> bool:
        """Whether the held-out images are a part of those to train on."""
        return self.train is not self.data

    def contents(self, model: Model) -> dict[str, int]:
        """Return the checksums that tell the run from others."""
        return contents_of(model, self.data, self.valid, self.given)
