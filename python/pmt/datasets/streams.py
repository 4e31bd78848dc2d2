"""Data sets of streams: samples that come one after the other, kept on disk and not in memory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.checks import checked_limit, checked_size
from pmt._util.progress import ProgressLine
from pmt.datasets.array_checks import NO_LABEL
from pmt.datasets.class_names import names_for
from pmt.datasets.dataset import Dataset
from pmt.datasets.mapped import all_finite
from pmt.datasets.samples import SampleReader, as_array, labels_of
from pmt.datasets.stream_cache import Block, StreamCache, StreamState

__all__ = ["Stream", "from_stream"]

# Pairs (input, label), anew from the first one, or from the sample of a number.
Stream = Iterable[Any] | Callable[[], Iterable[Any]] | Callable[[int], Iterable[Any]]

# The label of a sample that has none; its dtype tells it from a class.
UNLABELED = np.full(1, NO_LABEL, np.int8)

_PAIRS_REMEDY = "give (input, None) for a sample without a label"


def from_stream(
    source: Stream,
    cache: str | os.PathLike[str],
    *,
    limit: int = 0,
    key: str = "",
    features: bool = False,
    channels_first: bool | None = None,
    size: int | tuple[int, int] | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "stream",
) -> Dataset:
    """Write the samples of a stream into a folder in one pass, and give them as a data set.

    The data set reads the folder as it is used, so that memory holds some hundred samples, however
    many there are. An interrupted pass continues where it stopped, in another process, too; no more
    is read of the stream than is missing, and nothing where the folder holds `limit` samples, or
    where the stream has ended with no smaller limit.

    Parameters
    ----------
    source : iterable or callable
        Pairs (input, label), one sample or one batch each: an iterable, or a callable that returns
        one. A sample's label is an integer, a vector of float targets, or None; a batch's labels
        have shape (B,), its targets (B, K). Inputs are those of :func:`from_batches`, or pictures
        (Pillow). To continue, an iterable starts again and its first samples are skipped: they must
        be the same. A callable with an argument that has no default gets the number of the sample
        to begin with instead.
    cache : str or pathlib.Path
        Folder to keep the samples in; it is created. It takes H x W x C bytes per sample, four
        times as many if they are float32.
    limit : int
        End after this many samples; 0 continues to the end of the stream, and one without an end
        needs a limit. A folder that holds more gives the first; with a larger limit it continues,
        also where the stream had ended with a smaller one.
    key : str
        Says which stream it is, for example its version: a folder of another key is refused.
    features, channels_first, size : bool, int or tuple of int, optional
        As :func:`from_torch`. They are part of the key.
    class_names : sequence of str, optional
        Names in the order of the labels; by default "0", "1", ...
    name : str
        Short name for reports.

    Returns
    -------
    Dataset
        The samples, in the order in which they came.

    Raises
    ------
    TypeError, ValueError
        If a sample is malformed, or unlike those before it; nothing came; the folder holds another
        stream or something else, or is damaged; the stream to continue has begun already, or ends
        before what the folder holds. Samples before the one in error are kept.
    BlockingIOError
        If another process fills the folder.
    OSError
        If the folder cannot be written, for instance on a full disk.
    """
    limit = checked_limit(limit)
    samples = SampleReader(name, features, channels_first, checked_size(size), _PAIRS_REMEDY)
    reader = _StreamReader(samples)
    options = {"features": features, "channels_first": channels_first, "size": checked_size(size)}
    full_key = {"key": str(key), **{option: str(value) for option, value in options.items()}}
    folder = StreamCache(Path(cache), full_key)
    state = folder.read_state()
    if not state.holds(limit):
        with folder.locked():
            state = _filled(folder, folder.read_state(), reader, source, limit)
    if state.samples == 0:
        raise ValueError(f"{name} gives nothing: a data set holds at least one sample")
    count = min(limit, state.samples) if limit else state.samples
    return _dataset(*folder.rows(state, count), class_names, name)


def _filled(
    folder: StreamCache, state: StreamState, reader: _StreamReader, source: Stream, limit: int
) -> StreamState:
    if state.holds(limit):
        return state
    _check_begins_anew(source, state.samples, reader.name)
    pairs, skipped = _begun(source, state.samples)
    line = ProgressLine(limit, done=state.samples, unit="sample") if limit else None
    try:
        blocks = reader.blocks(pairs, state, skipped, limit - state.samples if limit else None)
        state = folder.append(state, _shown(blocks, line, state.samples))
    finally:
        if line is not None:
            line.clear()
        if callable(source) and hasattr(pairs, "close"):
            pairs.close()
    is_open = state.samples == 0 or 0 < limit == state.samples
    return state if is_open else folder.end(state, limit)


def _check_begins_anew(source: Stream, samples: int, name: str) -> None:
    """Raise an error for a generator that has begun: the samples to pass over are gone from it."""
    if samples == 0 or not inspect.isgenerator(source):
        return
    if inspect.getgeneratorstate(source) != inspect.GEN_CREATED:
        raise ValueError(
            f"{name} is a generator that has begun already, and the folder's {samples:,} samples "
            "are to be passed over: give a new one, or a function that returns one"
        )


def _begun(source: Stream, samples: int) -> tuple[Iterator[Any], int]:
    """Return an iterator of the stream, and how many of its samples are there already."""
    if not callable(source):
        return iter(source), samples
    begin: Callable[..., Iterable[Any]] = source
    if any(_is_needed(parameter) for parameter in inspect.signature(begin).parameters.values()):
        return iter(begin(samples)), 0
    return iter(begin()), samples


def _is_needed(parameter: inspect.Parameter) -> bool:
    by_position = (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return parameter.kind in by_position and parameter.default is parameter.empty


def _shown(blocks: Iterator[Block], line: ProgressLine | None, done: int) -> Iterator[Block]:
    for block in blocks:
        yield block
        done += len(block[0])
        if line is not None:
            line.update(done, "reading")


class _StreamReader:
    """Turns the pairs of a stream into rows of arrays."""

    def __init__(self, samples: SampleReader) -> None:
        self._samples = samples
        self.name = samples.source

    def blocks(
        self, pairs: Iterator[Any], state: StreamState, skipped: int, wanted: int | None
    ) -> Iterator[Block]:
        """Yield all but the first samples, at most this many of them."""
        first = StreamState({}, images=state.images, labels=state.labels)
        number = state.samples
        for pair in pairs:
            x, y = self._samples.pair(pair)
            labels, is_sample = _labels(y)
            if len(labels) <= skipped:
                skipped -= len(labels)
                continue
            images = self._samples.single(x) if is_sample else self._batch(x, labels)
            block = images[skipped:][:wanted], labels[skipped:][:wanted]
            skipped = 0
            first = self._checked(first, block, number)
            yield block
            number += len(block[0])
            if wanted is not None:
                wanted -= len(block[0])
                if wanted == 0:
                    return
        if skipped:
            raise ValueError(
                f"{self.name} ends after {state.samples - skipped:,} samples, and the folder holds "
                f"{state.samples:,}: give the same stream from its beginning, or remove the folder"
            )

    def _batch(self, x: object, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        images = self._samples.batch(x)
        if len(images) != len(labels):
            raise ValueError(
                f"{self._samples.source}: a batch of {len(images)} inputs has {len(labels)} "
                "labels: give one for each"
            )
        return images

    def _checked(self, first: StreamState, block: Block, number: int) -> StreamState:
        """Raise an error where samples cannot be kept; return what the first ones are."""
        source = self._samples.source
        if block[0].dtype.kind == "f" and not all_finite(block[0]):
            raise ValueError(
                f"{source}: sample {number} or one soon after it holds a value that is not finite: "
                "remove or replace it"
            )
        here = StreamState({}).with_block(block)
        if first.images is None:
            return here
        if (here.images, here.labels) != (first.images, first.labels):
            raise ValueError(
                f"{source}: sample {number} is {here.sample_text()}, those before it are "
                f"{first.sample_text()}: all must be alike; give size=(height, width) for pictures"
            )
        return first


def _labels(y: object) -> tuple[npt.NDArray[Any], bool]:
    """Return labels or targets as rows, and whether they are those of one sample."""
    if y is None:
        return UNLABELED.copy(), True
    if isinstance(y, list):
        return labels_of(y).astype(np.int64), False
    array = as_array(y)
    if array.dtype.kind == "f" and array.ndim <= 2:
        is_sample = array.ndim < 2
        rows = array.reshape(1, -1) if is_sample else array
        if not np.isfinite(rows).all():
            raise ValueError("a target is not finite: each must be a number")
        return rows.astype(np.float32), is_sample
    labels = labels_of(array[None] if array.ndim == 0 else array)
    if labels.size and labels.min() < 0:
        raise ValueError(
            f"label {labels.min()} is below 0: number the classes from 0, and give None for a "
            "sample without a label"
        )
    return labels.astype(np.int64), array.ndim == 0


def _dataset(
    images: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    class_names: Sequence[str] | None,
    name: str,
) -> Dataset:
    if labels.dtype == UNLABELED.dtype:
        return Dataset.unlabeled(images, name)
    if labels.ndim == 2:
        names = class_names or tuple(map(str, range(labels.shape[1])))
        return Dataset(images, labels, tuple(names), name)
    held = np.array(labels)
    return Dataset(images, held, names_for(name, held, class_names), name)
