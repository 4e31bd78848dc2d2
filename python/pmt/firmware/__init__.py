"""From a model to a board: export, memory, instructions, monitor."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.firmware import board, export, monitor, stream
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["board", "export", "monitor", "stream"]
