"""``pmt-lab reproduce``: studies measured, compared with the paper and kept as results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pmt._util.checks import checked_integer
from pmt._util.folder_lock import FolderLock
from pmt.datasets.downloading import named
from pmt_lab.reproduce import results
from pmt_lab.reproduce.comparison import compared_rows
from pmt_lab.reproduce.registry import STUDIES
from pmt_lab.reproduce.registry import study as find_study
from pmt_lab.reproduce.study import Context, Forecast, Row, Scale, Study, Unfinished

__all__ = ["ReproduceJob", "Reproduction", "forecast", "reproduce"]

_SECONDS_BETWEEN_TRIES = 0.2
_CIFAR10 = ("cifar-10-batches-bin", "cifar10")
_MCUNET = "mcunet-5fps.pkl"
# Folders by the names that they have as downloads, or as subsets.
_FINE_GRAINED = {
    "cars": ("cars", "stanford_cars", "cars196"),
    "cub": ("cub200", "CUB_200_2011", "cub100"),
    "flowers": ("flowers102", "oxford-102-flowers"),
    "food": ("food101", "food-101", "food10"),
    "pets": ("oxford-pets", "oxford-iiit-pet", "pets"),
}


@dataclass(frozen=True)
class ReproduceJob:
    """A study to do, see :func:`reproduce`.

    Parameters
    ----------
    study : str
        Name of the study, of :data:`pmt_lab.reproduce.registry.STUDIES`.
    scale : {"small", "full"}
        The paper's budget, or the share of it that the study states; or seconds, on what comes with
        pmt, whose figures are not comparable.
    out : str or pathlib.Path
        Folder of the runs. That of a full-scale sweep is ``OUT/GRID``, which studies share, and
        whatever else a study keeps is in ``OUT/NAME``; ``OUT/small`` holds those of small ones.
    data : str or pathlib.Path, optional
        Folder with what the user has of ``cifar-10-batches-bin``, ``mcunet-5fps.pkl`` and the
        fine-grained data sets; by default the working directory and downloads.
    jobs : int
        Processes; 0 for one per CPU at full scale and for this one only at small scale.
    shard : (int, int)
        ``(I, N)`` does the I-th of N parts of each sweep.
    dask : str, optional
        Address of a Dask scheduler.
    collect : bool
        Do no run: take what is finished.
    results : str or pathlib.Path, optional
        Folder that gets the result as NAME.json. Runs that earlier results there hold, as from
        another machine or another study of the same grid, stay and are not done again; nor are the
        trials that chose their rates.
    force : bool
        Take no run from there, and replace the result, whatever it holds.
    """

    study: str
    scale: Scale = "full"
    out: str | Path = "runs/reproduce"
    data: str | Path | None = None
    jobs: int = 0
    shard: tuple[int, int] = (1, 1)
    dask: str | None = None
    collect: bool = False
    results: str | Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        """Check what the command line checks as it reads its arguments."""
        find_study(self.study)
        if self.scale not in ("small", "full"):
            raise ValueError(f"scale={self.scale!r} must be 'small' or 'full'")
        if checked_integer("jobs", self.jobs) < 0:
            raise ValueError(f"jobs={self.jobs} must be 0 (one for each CPU) or more")
        if not isinstance(self.shard, tuple) or len(self.shard) != 2:
            raise TypeError(f"shard={self.shard!r} must be (I, N), the I-th of N parts")
        part, parts = (checked_integer("shard", number) for number in self.shard)
        if not 1 <= part <= parts:
            raise ValueError(f"shard={self.shard!r} must be (I, N) with I from 1 to N")
        for name in ("collect", "force"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}={getattr(self, name)!r} must be True or False")
        for name in ("out", "data", "results"):
            _check_folder(name, getattr(self, name))

    def context(self, tell: Callable[[str], None]) -> Context:
        """Return where the study works, with what is found of data and models."""
        root = Path(self.out) if self.scale == "full" else Path(self.out) / "small"
        model = _found(_MCUNET, self.data)
        fine_grained = {name: _first(names, self.data) for name, names in _FINE_GRAINED.items()}
        return Context(
            folder=(root / self.study).absolute(),
            data=None if self.data is None else Path(self.data),
            cifar10=_first(_CIFAR10, self.data),
            models=model.parent if model is not None else None,
            fine_grained={name: path for name, path in fine_grained.items() if path is not None},
            jobs=self.jobs or (0 if self.scale == "full" else 1),
            shard=self.shard,
            dask=self.dask,
            tell=tell,
            collect=self.collect,
            kept=self._kept(),
            earlier=self._own(),
            timed=self._timed(),
        )

    def _kept(self) -> dict[str, list[Mapping[str, Any]]]:
        """Return the grids of earlier results by name, those of this study first."""
        if self.results is None or self.force or find_study(self.study).forecast is None:
            return {}
        kept: dict[str, list[Mapping[str, Any]]] = {}
        for grids in self._earlier(Path(self.results)):
            for name, grid in grids.items():
                kept.setdefault(name, []).append(grid)
        return kept

    def _own(self) -> Mapping[str, Any]:
        """Return the data of this study's earlier result, if it is of this scale."""
        if self.results is None or self.force:
            return {}
        one = self._result_in(Path(self.results), self.study)
        data: Mapping[str, Any] = {} if one is None else one["data"]
        return data

    def _timed(self) -> list[list[Mapping[str, Any]]]:
        """Return the runs of earlier results, or else of those that come with the checkout."""
        try:
            folder = results.checkout_folder() if self.results is None else Path(self.results)
        except FileNotFoundError:
            return []
        runs = [
            [run for grid in grids.values() for run in grid["runs"]]
            for grids in self._earlier(folder, damaged_too=True)
        ]
        return [runs[0], [run for others in runs[1:] for run in others]]

    def _earlier(
        self, folder: Path, *, damaged_too: bool = False
    ) -> list[dict[str, dict[str, Any]]]:
        """Return the grids of the studies that have results of this scale, this study's first.

        With ``damaged_too`` a damaged file counts as one without grids.
        """
        found: list[dict[str, dict[str, Any]]] = []
        for name in dict.fromkeys((self.study, *STUDIES)):
            try:
                one = self._result_in(folder, name)
            except ValueError:
                if not damaged_too:
                    raise
                one = None
            found.append({} if one is None else results.with_sources(one))
        return found

    def _result_in(self, folder: Path, name: str) -> dict[str, Any] | None:
        """Return a study's result of this scale; None where there is none."""
        if not results.path_of(name, folder).exists():
            return None
        one = results.load(name, folder)
        return one if one["scale"] == self.scale else None


@dataclass(frozen=True)
class Reproduction:
    """A study that was measured: its result as JSON values, and the rows beside the paper."""

    study: Study
    result: Mapping[str, Any]
    rows: tuple[Row, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


def forecast(job: ReproduceJob) -> Forecast | None:
    """Return what is left of a study; None of one that takes minutes."""
    study = find_study(job.study)
    if study.forecast is None:
        return None
    return study.forecast(job.scale, job.context(lambda text: None))


def reproduce(job: ReproduceJob, *, tell: Callable[[str], None] | None = None) -> Reproduction:
    """Measure a table or figure of the paper, or continue it, and compare.

    Parameters
    ----------
    job : ReproduceJob
        The study and where it works.
    tell : callable, optional
        Gets lines of progress.

    Returns
    -------
    Reproduction
        The result and its rows.

    Raises
    ------
    ValueError
        If there is no such study, its result would replace one of another scale or grid, or `force`
        would leave a part.
    FileNotFoundError
        If data or the paper's network is missing.
    Unfinished
        If nothing is to be done, and a study without sweeps is not finished.
    KeyboardInterrupt
        On Ctrl-C; the same call continues.
    """
    study = find_study(job.study)
    if job.force and (job.results is None or job.collect or job.shard != (1, 1)):
        raise ValueError(
            "force replaces a whole result by what is measured: give results, and neither collect "
            "nor a shard"
        )
    kept = None if job.results is None else results.path_of(study.name, job.results)
    if kept is not None and not job.force:
        results.refuse_loss(kept, job.scale)
    before = _text_of(kept)
    context = job.context(tell or (lambda text: None))
    result = _result(study, job, context)
    rows = tuple(compared_rows(study, result, str(context.folder)))
    if kept is not None:
        with _sole_writer(kept):
            if study.forecast is not None and not job.force and _text_of(kept) != before:
                # Another process has written its runs meanwhile: take these in.
                again = replace(job, collect=True)
                result = _result(study, again, again.context(tell or (lambda text: None)))
                rows = tuple(compared_rows(study, result, str(context.folder)))
            saved = _saved(result, kept, job)
        if saved is not result:
            result, rows = saved, tuple(compared_rows(study, saved, str(kept)))
    grids = result["data"].get("grids", {})
    failed = {title: error for grid in grids.values() for title, error in grid["failed"].items()}
    return Reproduction(study, result, rows, failed)


def _text_of(kept: Path | None) -> bytes:
    return kept.read_bytes() if kept is not None and kept.exists() else b""


@contextmanager
def _sole_writer(kept: Path) -> Iterator[None]:
    """Wait until no other process writes this file of results."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(kept.with_suffix(".lock"))
    while not lock.acquire():
        time.sleep(_SECONDS_BETWEEN_TRIES)
    try:
        yield
    finally:
        lock.release()


def _saved(result: dict[str, Any], kept: Path, job: ReproduceJob) -> dict[str, Any]:
    """Write a result, unless the file has all its runs: then return that one."""
    if not job.force:
        results.refuse_loss(kept, job.scale, result)
        if kept.exists() and results.same_runs(
            result, earlier := results.load(job.study, kept.parent)
        ):
            return earlier
    results.save(result, kept.parent)
    return result


def _result(study: Study, job: ReproduceJob, context: Context) -> dict[str, Any]:
    """Measure a study, or take what is finished; without sweeps that is its last result."""
    if job.collect and study.forecast is None:
        try:
            return results.load(study.name, context.folder)
        except FileNotFoundError:
            raise Unfinished(
                f"{study.name}: nothing is finished in {context.folder}; the same without "
                "--collect measures it"
            ) from None
    start = time.monotonic()
    data = study.measure(job.scale, context)
    result = results.record(study.name, job.scale, data, time.monotonic() - start)
    if study.forecast is not None:
        return result
    last = _last(study, context)
    if last is not None and last["data"] == json.loads(json.dumps(result["data"])):
        return last  # nothing was left to measure, and its origin and time hold
    results.save(result, context.folder)
    return result


def _last(study: Study, context: Context) -> dict[str, Any] | None:
    try:
        return results.load(study.name, context.folder)
    except (FileNotFoundError, ValueError):
        return None


def _check_folder(name: str, folder: object) -> None:
    if folder is None:
        return
    if not isinstance(folder, str | Path):
        raise TypeError(f"{name}={folder!r} must be the path of a folder")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise NotADirectoryError(f"{name}={str(folder)!r} must be a folder, and is a file")
    if name == "data" and not Path(folder).exists():
        raise FileNotFoundError(f"{name}={str(folder)!r}: there is no such folder")


def _first(names: tuple[str, ...], folder: str | Path | None) -> Path | None:
    found = (_found(name, folder) for name in names)
    return next((path for path in found if path is not None), None)


def _found(name: str, folder: str | Path | None) -> Path | None:
    """Return a file or folder of this name in a folder, in the working directory or downloads."""
    if folder is not None:
        path = Path(folder) / name
        return path.absolute() if path.exists() else None
    path = named(name)
    return path.absolute() if path.exists() else None
