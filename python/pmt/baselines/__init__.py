"""Methods that the paper compares with."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
