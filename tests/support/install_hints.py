"""The end of every error about a missing optional package."""

__all__ = ["install_hint"]


def install_hint(extra: str) -> str:
    """How an extra is installed: from the package index, and from a clone."""
    return f'pip install "poor-mans-training[{extra}]", or in a clone pip install ".[{extra}]"'
