"""``pmt-lab reproduce``: studies measured, compared with the paper and kept as results."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.folder_lock import FolderLock
from pmt_lab.reproduce import compared_rows, find_study
from pmt_lab.reproduce import results as files
from pmt_lab.reproduce.study import Context, Row, Scale, Study, Unfinished

_SECONDS_BETWEEN_TRIES = 0.2


@dataclass(frozen=True)
class Reproduction:
    """A study that was measured: its result as JSON values, and the rows beside the paper.

    ``failed`` has the errors of the runs that failed, by their titles.
    """

    study: Study
    result: Mapping[str, Any]
    rows: tuple[Row, ...]
    failed: Mapping[str, str]


def reproduce(
    study: str,
    scale: Scale = "full",
    *,
    out: str | Path = "runs/reproduce",
    data: str | Path | None = None,
    jobs: int = 0,
    dask: str | None = None,
    collect: bool = False,
    results: str | Path | None = None,
    force: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Reproduction:
    """Measure a table or figure of the paper, or continue it, and compare.

    Parameters
    ----------
    study : str
        Name of the study, of :data:`pmt_lab.reproduce.STUDIES`.
    scale : {"full", "small"}
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
    dask : str, optional
        Address of a Dask scheduler.
    collect : bool
        Do no run: take what is finished.
    results : str or pathlib.Path, optional
        Folder that gets the result as NAME.json. Runs that the file holds, as from another machine,
        stay and are not done again; nor are the trials that chose their rates.
    force : bool
        Take no run from there, and replace the result, whatever it holds.
    tell : callable, optional
        Gets lines of progress.

    Returns
    -------
    Reproduction
        The result and its rows.

    Raises
    ------
    ValueError
        If there is no such study or scale, the result would replace one of another scale or grid,
        or `force` would leave a part.
    FileNotFoundError
        If data or the paper's network is missing.
    Unfinished
        If nothing is to be done, and a study without sweeps is not finished.
    KeyboardInterrupt
        On Ctrl-C; the same call continues.
    """
    found = find_study(study)
    if scale not in ("small", "full"):
        raise ValueError(f"scale={scale!r} must be 'small' or 'full'")
    if force and (results is None or collect):
        raise ValueError(
            "force replaces a whole result by what is measured: give results, and leave out collect"
        )
    path = None if results is None else files.path_of(study, results)
    earlier = None if path is None or force else _earlier(path, scale)
    root = Path(out) if scale == "full" else Path(out) / "small"
    context = Context(
        folder=(root / study).absolute(),
        data=None if data is None else Path(data),
        jobs=jobs or (0 if scale == "full" else 1),
        dask=dask,
        tell=tell or (lambda text: None),
        collect=collect,
        earlier={**earlier["data"], "grids": files.with_sources(earlier)} if earlier else {},
    )
    result = _measured(found, scale, context)
    grids = result["data"].get("grids", {}).values()
    failed = {title: error for grid in grids for title, error in grid["failed"].items()}
    if path is not None:
        with _sole_writer(path):
            earlier = None if force else _earlier(path, scale)
            result = files.joined(result, earlier, path) if earlier else result
            if result is not earlier:
                files.save(result, path.parent)
    rows = compared_rows(found, result, context.folder if path is None else path)
    return Reproduction(found, result, tuple(rows), failed)


def _measured(study: Study, scale: Scale, context: Context) -> dict[str, Any]:
    """Measure a study, or take finished parts; without sweeps that is its last result."""
    last = None
    if not study.sweeps:
        try:
            last = files.load(study.name, context.folder)
        except (FileNotFoundError, ValueError):
            if context.collect:
                raise Unfinished(
                    f"{study.name}: nothing is finished in {context.folder}; the same without "
                    "--collect measures it"
                ) from None
        if last is not None and context.collect:
            return last
    start = time.monotonic()
    data = study.measure(scale, context)
    result = files.record(study.name, scale, data, time.monotonic() - start)
    if not study.sweeps:
        if last is not None and files.same_figures(last, result):
            return last  # nothing was left to measure, and its origin and time hold
        files.save(result, context.folder)
    return result


def _earlier(path: Path, scale: str) -> dict[str, Any] | None:
    """Return the result in a file, None without one; a ValueError if it is of another scale."""
    if not path.exists():
        return None
    found = files.load(path.stem, path.parent)
    if found["scale"] != scale:
        raise ValueError(
            f"{path}: is of {found['scale']} scale, the new one {scale}; give --results another "
            "folder, or --force to replace the file"
        )
    return found


@contextmanager
def _sole_writer(path: Path) -> Iterator[None]:
    """Wait until no other process writes this file of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(path.with_suffix(".lock"))
    while not lock.acquire():
        time.sleep(_SECONDS_BETWEEN_TRIES)
    try:
        yield
    finally:
        lock.release()
