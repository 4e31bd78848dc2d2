"""Memory and instructions that a model takes on a board."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.firmware.board import profile
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["profile"]
