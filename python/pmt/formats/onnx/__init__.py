"""ONNX: importers and exporter."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.formats.onnx import float_importer, importer
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["float_importer", "importer"]
