"""A Dask cluster as the workers of a sweep."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["dask_backend"]

_SECONDS_TO_CONNECT = 30


@contextmanager
def dask_backend(address: str) -> Iterator[None]:
    """Make a cluster joblib's backend for as long as the block lasts.

    Parameters
    ----------
    address : str
        Of the scheduler, ``"tcp://host:8786"``.

    Raises
    ------
    ImportError
        If joblib or Dask is missing.
    OSError
        If nothing answers at the address.
    """
    try:
        joblib: Any = importlib.import_module("joblib")
        distributed: Any = importlib.import_module("dask.distributed")
    except ImportError as error:
        raise ImportError(
            '--dask needs joblib and Dask: pip install "poor-mans-training[sweep]" '
            '"dask[distributed]"'
        ) from error
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise OSError(
            f"--dask {address}: no scheduler answers there ({error}); start one with `dask "
            "scheduler`, and workers with `dask worker ADDRESS`"
        ) from error
    with client, joblib.parallel_config(backend="dask"):
        yield
