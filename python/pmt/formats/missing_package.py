"""The error for a package that an export needs."""

from __future__ import annotations

__all__ = ["missing"]


def missing(suffix: str, package: str) -> ImportError:
    """Return the error for a package that is not installed; extras are named after packages."""
    return ImportError(
        f"writing {suffix} needs the package {package}: "
        f'pip install "poor-mans-training[{package}]"',
        name=package,
    )
