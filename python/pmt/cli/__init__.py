"""The command ``pmt``: the package from a shell."""

from pmt.cli.program import main

__all__ = ["main"]
