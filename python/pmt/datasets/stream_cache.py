"""A folder that keeps the first samples of a stream, and continues where it was interrupted.

``images.bin`` and ``labels.bin`` are rows of arrays, ``stream.json`` says how many of them are
whole. What lies after those was being written when the process ended, and is overwritten.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pmt._util import atomic_file
from pmt._util.folder_lock import FolderLock
from pmt.datasets.files import damaged, reading

__all__ = ["Block", "StreamCache", "StreamState"]

Array = npt.NDArray[Any]
Block = tuple[Array, Array]  # inputs (B, H, W, C), and labels (B,) or targets (B, K)

_SECONDS_BETWEEN_COMMITS = 2.0
_BUFFER = 1 << 20
_REMEDY = "remove the folder, and the stream is read again"


@dataclass(frozen=True)
class StreamState:
    """The content of ``stream.json``.

    Attributes
    ----------
    key : dict of str to str
        Description of the stream by the caller, and the options that turn it into arrays.
    samples : int
        Whole samples in the files.
    ended : bool
        Whether the stream had no more of them when it was read last.
    images, labels : tuple of str and tuple of int, or None
        Dtype and shape of a sample's input and of its label; None before the first.
    ended_limit : int or None
        Limit with which the stream ended, or its number of samples where there was no limit. None
        in a folder of an earlier version, whose end holds for every limit.
    """

    key: dict[str, str]
    samples: int = 0
    ended: bool = False
    images: tuple[str, tuple[int, ...]] | None = None
    labels: tuple[str, tuple[int, ...]] | None = None
    ended_limit: int | None = None

    def holds(self, limit: int) -> bool:
        """Whether there is nothing to read for so many samples, or for all where it is 0.

        A stream that has ended may have more to give by now, as a camera that is on again, but
        only a larger limit than the one with which it ended asks for that.
        """
        if self.samples == 0:
            return False
        if 0 < limit <= self.samples:
            return True
        return self.ended and (self.ended_limit is None or limit <= self.ended_limit)

    def with_block(self, block: Block) -> StreamState:
        """Return the state with more samples."""
        images, labels = map(_kind, block)
        count = self.samples + len(block[0])
        return dataclasses.replace(self, samples=count, ended=False, images=images, labels=labels)

    def sample_text(self) -> str:
        """Return dtype and shape of a sample and of its label, for errors."""
        parts = []
        for kind in (self.images, self.labels):
            dtype, shape = kind or ("", ())
            parts.append(" ".join([np.dtype(dtype).name, "x".join(map(str, shape))]).strip())
        return f"{parts[0]} with a label of {parts[1]}"


class StreamCache:
    """The folder; one process at a time writes into it.

    Parameters
    ----------
    path : pathlib.Path
        The folder, which need not exist.
    key : dict of str to str
        See :class:`StreamState`; a folder of another key is refused.
    """

    def __init__(self, path: Path, key: dict[str, str]) -> None:
        self.path = path
        self.key = key

    def read_state(self) -> StreamState:
        """Return what the folder holds.

        Raises
        ------
        ValueError
            If it is of another key, damaged, or not a cache folder at all.
        """
        described = self.path / "stream.json"
        if not described.is_file():
            if self.path.exists() and not self._is_begun():
                raise damaged(
                    self.path, "exists and is not a cache of a stream", "give another folder"
                )
            return StreamState(self.key)
        with reading(described, _REMEDY):
            text = described.read_bytes()
        try:
            state = _state_of(json.loads(text))
        except (ValueError, TypeError, KeyError):
            raise damaged(described, "is damaged", _REMEDY) from None
        self._check_key(state.key)
        self._check_sizes(state)
        return state

    def _is_begun(self) -> bool:
        """Whether the folder has nothing but what a pass writes before its first whole samples."""
        if not self.path.is_dir():
            return False
        ours = ("images.bin", "labels.bin", ".stream.json.")
        return all(entry.name.startswith(ours) for entry in self.path.iterdir())

    def _check_key(self, there: dict[str, str]) -> None:
        differing = [
            name for name in {**there, **self.key} if there.get(name) != self.key.get(name)
        ]
        if differing:
            shown = "; ".join(
                f"{name}: there {there.get(name)!r}, here {self.key.get(name)!r}"
                for name in differing
            )
            raise ValueError(
                f"cache={str(self.path)!r} holds another stream ({shown}); give another folder, or "
                "remove this one"
            )

    def _check_sizes(self, state: StreamState) -> None:
        for name, kind in (("images", state.images), ("labels", state.labels)):
            path = self.path / f"{name}.bin"
            least = state.samples * _row_bytes(kind) if kind else 0
            size = path.stat().st_size if path.is_file() else 0
            if size < least:
                raise damaged(path, f"has {size} bytes of {least}", _REMEDY)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other processes from writing into it.

        Raises
        ------
        BlockingIOError
            If another one writes into it.
        """
        self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
        with FolderLock.of_folder(self.path).holding(f"cache={str(self.path)!r}"):
            self.path.mkdir(exist_ok=True)
            yield

    def append(self, state: StreamState, blocks: Iterable[Block]) -> StreamState:
        """Write samples after those that are there, and return the new state.

        However it ends, and even where the process is killed, the folder holds whole samples; an
        error or Ctrl-C, of the stream too, keeps all that came before it.
        """
        committed = time.monotonic()
        with (
            self._open("images", state.images, state) as images,
            self._open("labels", state.labels, state) as labels,
        ):
            files = (images, labels)
            try:
                for block in blocks:
                    state = self._written(state, block, files)
                    if time.monotonic() - committed > _SECONDS_BETWEEN_COMMITS:
                        self._commit(state, files)
                        committed = time.monotonic()
            finally:
                self._commit(state, files)
        return state

    def end(self, state: StreamState, limit: int) -> StreamState:
        """Note that the stream has no more samples, up to a limit or, without one, for now."""
        state = dataclasses.replace(state, ended=True, ended_limit=limit or state.samples)
        self._commit(state, ())
        return state

    def rows(self, state: StreamState, count: int) -> Block:
        """Map the first samples into memory, read-only."""
        assert state.images is not None
        assert state.labels is not None
        both = (("images", state.images), ("labels", state.labels))
        found = [
            np.memmap(self.path / f"{name}.bin", dtype, "r", shape=(count, *shape))
            for name, (dtype, shape) in both
        ]
        return found[0], found[1]

    @contextmanager
    def _open(
        self, name: str, kind: tuple[str, tuple[int, ...]] | None, state: StreamState
    ) -> Iterator[IO[bytes]]:
        path = self.path / f"{name}.bin"
        path.touch()
        with path.open("r+b", buffering=_BUFFER) as file:
            file.truncate(state.samples * _row_bytes(kind) if kind else 0)
            file.seek(0, os.SEEK_END)
            yield file

    @contextmanager
    def _writing(self, state: StreamState) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno,
                f"could not write sample {state.samples} ({error.strerror}); free some space, and "
                "the same call continues from there",
                str(self.path),
            ) from error

    def _written(
        self, state: StreamState, block: Block, files: tuple[IO[bytes], IO[bytes]]
    ) -> StreamState:
        for file, rows in zip(files, block, strict=True):
            with self._writing(state):
                file.write(np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).data)
        return state.with_block(block)

    def _commit(self, state: StreamState, files: Iterable[IO[bytes]]) -> None:
        """Bring the samples to disk before the file that counts them."""
        for file in files:
            with self._writing(state):
                file.flush()
                os.fsync(file.fileno())
        text = json.dumps(dataclasses.asdict(state), indent=1, sort_keys=True)
        atomic_file.write_text(self.path / "stream.json", text + "\n")


def _kind(rows: Array) -> tuple[str, tuple[int, ...]]:
    return rows.dtype.newbyteorder("<").str, rows.shape[1:]


def _row_bytes(kind: tuple[str, tuple[int, ...]]) -> int:
    dtype, shape = kind
    return np.dtype(dtype).itemsize * math.prod(shape)


def _state_of(stored: dict[str, Any]) -> StreamState:
    """Return the state that a file describes, or raise an error where none can be so."""
    samples, ended, key = stored["samples"], stored["ended"], stored["key"]
    images, labels = (_stored_kind(stored[name]) for name in ("images", "labels"))
    limit = stored.get("ended_limit")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise ValueError(f"ended_limit {limit!r}")
    if type(samples) is not int or samples < 0 or type(ended) is not bool:
        raise ValueError(f"samples {samples!r}, ended {ended!r}")
    if not isinstance(key, dict):
        raise TypeError(f"key {key!r}")
    if (images is None) != (labels is None) or (samples > 0 and images is None):
        raise ValueError(f"{samples} samples of {images} and {labels}")
    key = {str(k): str(v) for k, v in key.items()}
    return StreamState(key, samples, ended, images, labels, limit)


def _stored_kind(stored: Any) -> tuple[str, tuple[int, ...]] | None:
    if stored is None:
        return None
    dtype, shape = stored
    is_shape = isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape)
    if not is_shape or re.fullmatch(r"[<|][biuf][1248]", dtype) is None:
        raise ValueError(f"dtype {dtype!r}, shape {shape!r}")
    return np.dtype(dtype).str, tuple(shape)
