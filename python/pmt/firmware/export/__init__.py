"""Export of a model with its trainer as a firmware project."""

from pmt.firmware.export.folder import Lock, read_lock
from pmt.firmware.export.learner import LearnerExport, export_learner, export_learner_files
from pmt.firmware.export.project import export, export_files
from pmt.firmware.export.report import ExportReport
from pmt.firmware.export.target import targets
from pmt.model.card import CardContents, read_card

__all__ = [
    "CardContents",
    "ExportReport",
    "LearnerExport",
    "Lock",
    "export",
    "export_files",
    "export_learner",
    "export_learner_files",
    "read_card",
    "read_lock",
    "targets",
]
