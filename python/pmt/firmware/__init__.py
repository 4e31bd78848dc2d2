"""From a model to a board: export, memory, instructions, monitor."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
