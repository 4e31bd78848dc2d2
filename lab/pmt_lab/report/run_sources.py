"""Finished runs from wherever they are: folders of sweeps, and files of kept runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pmt_lab.report.finished_runs import FinishedRun
from pmt_lab.report.kept_runs import read_kept
from pmt_lab.sweep.failure import read_failures
from pmt_lab.sweep.result import read_result

__all__ = ["Found", "gather_runs", "read_runs"]


@dataclass
class Found:
    """Contents of folders and files of sweeps.

    Attributes
    ----------
    runs : list of FinishedRun
        Finished runs, in the order of their hashes.
    unfinished : list of str
        Hashes of those that were begun, or failed and left a damaged record of it.
    failed : list of FinishedRun
        Runs that ended with an error, of which only axes, options and the error are known.
    trials : int
        Number of finished trials of learning rates.
    """

    runs: list[FinishedRun] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    failed: list[FinishedRun] = field(default_factory=list)
    trials: int = 0


def read_runs(folders: Iterable[str | Path]) -> tuple[list[FinishedRun], int]:
    """Read the finished runs of sweeps except trials, and count the unfinished ones.

    Parameters
    ----------
    folders : iterable of str or pathlib.Path
        Folders of sweeps, and files of :meth:`pmt_lab.report.Report.keep`. A run that is in
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
    found = gather_runs(folders)
    return found.runs, len(found.unfinished)


def gather_runs(folders: Iterable[str | Path]) -> Found:
    """As :func:`read_runs`, with the hashes of the unfinished ones, and the failed ones."""
    found: dict[str, FinishedRun] = {}
    failed: dict[str, FinishedRun] = {}
    unfinished: set[str] = set()
    trials = 0
    paths = [Path(folder) for folder in folders]
    for path in paths:
        if path.is_file():
            here = Found(*read_kept(path))
        elif path.is_dir():
            here = _read_folder(path)
        else:
            raise FileNotFoundError(
                f"{path}: no such folder or file; give the --out of a `pmt-lab sweep`, or a file "
                "that `pmt-lab report --keep` wrote"
            )
        for runs, known in ((here.runs, found), (here.failed, failed)):
            for run in runs:
                known.setdefault(run.folder.name, run)
        unfinished.update(here.unfinished)
        trials += here.trials
    if not found:
        names = ", ".join(map(str, paths))
        what = "only trials of learning rates" if trials else "no finished run of a sweep"
        begun = trials or failed or unfinished
        remedy = (
            "continue with the same `pmt-lab sweep`" if begun else "start one with `pmt-lab sweep`"
        )
        raise ValueError(f"{names}: holds {what}; {remedy}")
    return Found(
        [found[name] for name in sorted(found)],
        sorted(unfinished - found.keys() - failed.keys()),
        [failed[name] for name in sorted(failed.keys() - found.keys())],
        trials,
    )


def _read_folder(path: Path) -> Found:
    here = Found()
    finished = set()
    for folder in sorted(p for p in path.iterdir() if p.is_dir()):
        result = read_result(folder)
        if result is not None:
            finished.add(folder.name)
        if result is not None and result.get("trial"):
            here.trials += 1
        elif result is not None:
            here.runs.append(FinishedRun(folder, result))
        elif (folder / "config.toml").is_file():
            here.unfinished.append(folder.name)
    failed, unreadable = read_failures(path, finished)
    here.failed = [FinishedRun(path / name, one) for name, one in failed.items()]
    here.unfinished += unreadable
    return here
