"""The quantized graph, its image, and the float graph before quantization."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.net import graph
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["graph"]
