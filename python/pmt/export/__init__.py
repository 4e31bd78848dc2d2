"""Export of a model with its trainer as a firmware project."""

from pmt.export.project import export
from pmt.export.report import ExportReport
from pmt.export.sources import targets

__all__ = ["ExportReport", "export", "targets"]
