"""Fuzzing of everything that reads a file somebody else wrote: ``python -m fuzz --help``."""
