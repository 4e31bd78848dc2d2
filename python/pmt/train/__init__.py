"""Zeroth-order training: options, schedule, run, trainer, and the preparation of a model."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.train import choose, extensions, option_fields, prepare, stepper, trainer
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["choose", "extensions", "option_fields", "prepare", "stepper", "trainer"]
