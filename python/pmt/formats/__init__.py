"""Files of other projects: readers and writers of graphs."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names
from pmt.formats.reading import read
from pmt.formats.writing import SUFFIXES, check_destination, write

__all__ = ["SUFFIXES", "check_destination", "onnx", "read", "write"]

if TYPE_CHECKING:
    from pmt.formats import onnx
else:
    __getattr__ = lazy_names(__name__)
