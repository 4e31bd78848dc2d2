"""A model and its training in figures: layers, work, memory of each method and of each step."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
