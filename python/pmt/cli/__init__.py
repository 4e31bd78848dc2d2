"""The command ``pmt``: what the package does, from a shell."""

from pmt.cli.program import main

__all__ = ["main"]
