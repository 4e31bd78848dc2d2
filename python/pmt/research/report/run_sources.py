"""Finished runs from wherever they are: folders of sweeps, and files of kept runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pmt.research.report.finished_runs import FinishedRun
from pmt.research.report.kept_runs import read_kept
from pmt.research.sweep.result import read_result

__all__ = ["gather_runs", "read_runs"]


def read_runs(folders: Iterable[str | Path]) -> tuple[list[FinishedRun], int]:
    """Read the finished runs of sweeps but trials of learning rates, and count the unfinished ones.

    Parameters
    ----------
    folders : iterable of str or pathlib.Path
        Folders of sweeps, and files of :meth:`pmt.research.report.Report.keep`. A run that is in
        several counts once.

    Returns
    -------
    runs : list of FinishedRun
        Finished runs, in the order of their hashes.
    unfinished : int
        Run folders without a result.

    Raises
    ------
    FileNotFoundError
        If a folder or file does not exist.
    ValueError
        If a result or a file is damaged, or there is none.
    """
    runs, unfinished = gather_runs(folders)
    return runs, len(unfinished)


def gather_runs(folders: Iterable[str | Path]) -> tuple[list[FinishedRun], list[str]]:
    """As :func:`read_runs`, with the hashes of the unfinished ones."""
    found: dict[str, FinishedRun] = {}
    unfinished: set[str] = set()
    trials = 0
    paths = [Path(folder) for folder in folders]
    for path in paths:
        if path.is_file():
            runs, begun = read_kept(path)
        elif path.is_dir():
            runs, begun, tried = _read_folder(path)
            trials += tried
        else:
            raise FileNotFoundError(
                f"{path} is not a folder; give the --out of a `pmt sweep`, or a file that "
                "`pmt report --keep` wrote"
            )
        for run in runs:
            found.setdefault(run.folder.name, run)
        unfinished.update(begun)
    if not found:
        names = ", ".join(map(str, paths))
        what = "only trials of learning rates" if trials else "no finished run of a sweep"
        remedy = "go on with the same `pmt sweep`" if trials else "start one with `pmt sweep`"
        raise ValueError(f"{names}: holds {what}; {remedy}")
    return [found[name] for name in sorted(found)], sorted(unfinished - set(found))


def _read_folder(path: Path) -> tuple[list[FinishedRun], list[str], int]:
    """Return the runs of a sweep, the hashes of unfinished ones, and the number of trials."""
    runs, unfinished, trials = [], [], 0
    for folder in sorted(p for p in path.iterdir() if p.is_dir()):
        result = read_result(folder)
        if result is not None and result.get("trial"):
            trials += 1
        elif result is not None:
            runs.append(FinishedRun(folder, result))
        elif (folder / "config.toml").is_file():
            unfinished.append(folder.name)
    return runs, unfinished, trials
