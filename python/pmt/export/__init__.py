"""Export of a model with its trainer as a firmware project."""

from pmt.export.card_reader import CardContents, read_card
from pmt.export.lock import Lock, read_lock
from pmt.export.project import export
from pmt.export.report import ExportReport
from pmt.export.sources import targets

__all__ = ["CardContents", "ExportReport", "Lock", "export", "read_card", "read_lock", "targets"]
