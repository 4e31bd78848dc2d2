"""Files of other projects: readers and writers of graphs."""

from pmt.formats.reading import read
from pmt.formats.writing import SUFFIXES, check_destination, write

__all__ = ["SUFFIXES", "check_destination", "read", "write"]
