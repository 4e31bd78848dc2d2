"""Methods that the paper compares with."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.baselines import backprop, sparse_update
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["backprop", "sparse_update"]
