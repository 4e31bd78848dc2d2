"""Clean statistics and alignment from a data source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pmt.model import Model
from pmt.protocol import DataSource
from pmt.train.prepare.alignment import Alignment, align
from pmt.train.prepare.clean_statistics import CleanStatistics, measure_statistics, with_statistics

__all__ = ["AlignJob", "MeasuredModel", "StatisticsJob", "align_model", "store_statistics"]

LayerProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class StatisticsJob:
    """A measurement of clean statistics, see :func:`store_statistics`.

    Parameters
    ----------
    model : Model
        The model; it is not changed.
    data : DataSource
        Images as the model was trained on.
    split : {"train", "test"}
        Part of the data set.
    images : int
        At most this many, always the same ones; 0 takes all.
    threads : int
        Threads to use, 0 for all; the result does not depend on it.
    """

    model: Model
    data: DataSource
    split: str = "train"
    images: int = 256
    threads: int = 0


@dataclass(frozen=True)
class AlignJob(StatisticsJob):
    """An alignment, see :func:`align_model`.

    Parameters
    ----------
    model : Model
        The model, with statistics of clean images in it; it is changed in place.
    data : DataSource
        New images; no labels are used.
    split, images, threads
        As in :class:`StatisticsJob`.
    windows, reliability : bool
        As in :func:`pmt.train.prepare.alignment.align`.
    """

    windows: bool = True
    reliability: bool = True


@dataclass(frozen=True)
class MeasuredModel:
    """A copy of a model with the statistics that were measured on ``images`` images."""

    model: Model
    statistics: CleanStatistics
    images: int

    @property
    def channels(self) -> int:
        """Channels of all layers that were measured."""
        return sum(values.shape[1] for values in self.statistics.channels.values())

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "images": self.images,
            "layers": len(self.statistics.channels),
            "channels": self.channels,
            "windows": len(self.statistics.windows),
        }


def store_statistics(job: StatisticsJob, *, progress: LayerProgress | None = None) -> MeasuredModel:
    """Measure what a model sees on clean images, and store it in a copy of the model.

    Parameters
    ----------
    job : StatisticsJob
        The model and the images.
    progress : callable, optional
        Called as ``progress(done, layers)`` after each layer.

    Returns
    -------
    MeasuredModel
        Whose ``model.save(path)`` keeps the statistics.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :meth:`pmt.protocol.DataSource.load`.
    """
    data = job.data.load(job.split, job.model, limit=job.images)
    found = measure_statistics(job.model, data.images, threads=job.threads, progress=progress)
    return MeasuredModel(with_statistics(job.model, found), found, len(data))


def align_model(job: AlignJob, *, progress: LayerProgress | None = None) -> Alignment:
    """Give a model, in place, the statistics on new images that it holds of clean ones.

    Parameters
    ----------
    job : AlignJob
        The model and the images.
    progress : callable, optional
        Called as ``progress(done, layers)`` after each layer.

    Returns
    -------
    Alignment
        What it took.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :meth:`pmt.protocol.DataSource.load` and :func:`pmt.train.prepare.alignment.align`.
    """
    data = job.data.load(job.split, job.model, limit=job.images)
    return align(
        job.model,
        data.images,
        windows=job.windows,
        reliability=job.reliability,
        threads=job.threads,
        progress=progress,
    )
