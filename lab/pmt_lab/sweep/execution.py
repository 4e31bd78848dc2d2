"""One run, from its images to its result; in any process of any machine that sees the folder."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pmt import _core, methods
from pmt._util import atomic_file
from pmt._util.checks import OptionWarning
from pmt.datasets import Dataset
from pmt.model import ImageScores, Model
from pmt.model.loading import load
from pmt.protocol import Split
from pmt.train.run.folder import RunFolder
from pmt.train.run.loop import stepper_state
from pmt.train.run.result import RunResult
from pmt.train.trainer import Trainer
from pmt_lab.sweep.failure import forget_failure, note_failure
from pmt_lab.sweep.result import RESULT, Measured, measure, measure_with, read_result
from pmt_lab.sweep.run_data import at_size, checksums, load_split, pools
from pmt_lab.sweep.run_spec import RunSpec

__all__ = ["Outcome", "execute"]


@dataclass(frozen=True)
class Outcome:
    """End of a run.

    ``found`` where it was finished already, ``busy`` where another process has it, whose name
    ``text`` holds; of a failed one that is the error.
    """

    hash: str
    state: Literal["finished", "found", "busy", "failed"]
    text: str = ""


def execute(spec: RunSpec, out: str, threads: int) -> Outcome:
    """Do a run in its folder below ``out``, or continue it, unless another process does it.

    A run that raises an error has failed, and the sweep continues without it.
    """
    folder = Path(out) / spec.hash
    run = RunFolder(folder)
    try:
        if read_result(folder) is not None:
            forget_failure(spec, Path(out))
            return Outcome(spec.hash, "found")
        try:
            if not run.lock.acquire():
                return Outcome(spec.hash, "busy", run.lock.holder())
            return _locked(spec, run, threads)
        finally:
            run.lock.release()
    except Exception as error:
        return Outcome(spec.hash, "failed", _described(error, folder))


def _locked(spec: RunSpec, run: RunFolder, threads: int) -> Outcome:
    """Do a run whose lock is ours, and keep its error beside the folder until it is tried again."""
    out = run.path.parent
    forget_failure(spec, out)
    try:
        if read_result(run.path) is not None:
            return Outcome(spec.hash, "found")
        _run(spec, run, threads)
    except Exception as error:
        text = _described(error, run.path)
        note_failure(spec, out, text)
        return Outcome(spec.hash, "failed", text)
    return Outcome(spec.hash, "finished")


def _described(error: Exception, folder: Path) -> str:
    """Return an error as text that says where it was, which a full disk alone does not.

    JSON files keep it: what UTF-8 cannot hold, as in the name of a file, becomes an escape.
    """
    text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        return f"{text}: {str(folder)!r}"
    return text


def _run(spec: RunSpec, run: RunFolder, threads: int) -> None:
    start = time.monotonic()
    model = load(spec.model["path"], **{k: v for k, v in spec.model.items() if k != "path"})
    _check_model(spec, model)
    images = _images(spec, model)
    parts = _parts(spec, images)
    before = _before(spec, model, parts, threads)
    run.path.mkdir(parents=True, exist_ok=True)
    training: dict[str, Any] = {"macs": 0, "forwards": 0, "steps": 0, "train_seconds": 0.0}
    after = before
    if spec.trains:
        trainer, result = _fit(spec, model, images, run, threads)
        training = _training(result)
        after = _tested(trainer, result, run, images, parts)
    record = {
        **spec.definition(),
        "model": spec.model["path"],
        "data": spec.data["path"],
        "images": {"train": len(images.train)},
        **training,
        "before": {name: found.to_record() for name, found in before.items()},
        "after": {name: found.to_record() for name, found in after.items()},
        "seconds": round(time.monotonic() - start, 2),
        "threads": threads,
        "pmt": _core.__version__,
        **({"trial": True} if spec.trial else {}),
        **({"tuning": dict(spec.tuning)} if spec.tuning else {}),
    }
    atomic_file.write_text(run.path / RESULT, json.dumps(record, indent=1, sort_keys=True) + "\n")


def _fit(
    spec: RunSpec, model: Model, images: Split, run: RunFolder, threads: int
) -> tuple[Trainer, RunResult]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptionWarning)  # said when the sweep was planned
        trainer = methods.trainer(spec.base, threads=threads, **spec.options)
    result = trainer.fit(
        model,
        at_size(images.train, model),
        held_out=at_size(images.held_out, model) if images.held_out is not None else None,
        out=run,
        source=spec.source(),
        progress=False,
    )
    return trainer, result


def _check_model(spec: RunSpec, model: Model) -> None:
    crc = _core.crc32(model.image())
    if crc != spec.contents["model_crc32"]:
        raise ValueError(
            f"{spec.model['path']}: the model is not the one that the sweep was planned with "
            f"(CRC-32 {crc}, planned {spec.contents['model_crc32']}); restore it, or start the "
            "sweep again"
        )


def _training(result: RunResult) -> dict[str, Any]:
    last = result.epochs[-1]
    kept = result.kept or last
    return {
        "macs": last["macs"],
        "forwards": last["forwards"],
        "steps": last["step"] + 1,
        "train_seconds": last["seconds"],
        "chosen_epoch": kept.get("epoch", 0),
        "chosen_state": kept.get("phase", "epoch"),
        "phases": result.phases,
        "epochs": last["epoch"],
    }


def _tested(
    trainer: Trainer,
    result: RunResult,
    run: RunFolder,
    images: Split,
    parts: Mapping[str, Dataset],
) -> dict[str, Measured]:
    """Measure the chosen model; of float training the last step's float network.

    A ``.pmt`` holds int8 weights alone: the best float network is not kept, only the last one.
    """
    if not trainer.trains_floats:
        return _measured(result.model, parts, trainer.threads)
    saved, _ = run.load_checkpoint()
    # The run's own options: some trainers add to theirs what they chose by the data.
    made: Any = type(trainer)
    again = made(run.read_config()[0], threads=trainer.threads)
    stepper = again.stepper(result.model, len(images.train))
    stepper.load_state(stepper_state(run.load_state(saved)))

    def score(part: Dataset) -> ImageScores:
        found: ImageScores = stepper.score_images(result.model, part, trainer.threads)
        return found

    return {name: measure_with(score, result.model, data) for name, data in parts.items()}


# Data of the last run of this process. Runs of one corruption follow each other.
_LAST_IMAGES: dict[str, Split] = {}
_LAST_BEFORE: dict[str, dict[str, Measured]] = {}


def _images(spec: RunSpec, model: Model) -> Split:
    shift = [dict(spec.contents), spec.corruption, spec.severity, dict(spec.protocol)]
    key = json.dumps([*shift, spec.data["path"]], sort_keys=True)
    if key not in _LAST_IMAGES:
        pair = pools(spec.data, spec.corruption, spec.severity, model)
        for name, crc in checksums(pair, spec.protocol).items():
            if spec.contents[name] != crc:
                raise ValueError(
                    f"{spec.data['path']}: the images are not those that the sweep was planned "
                    f"with ({name} {crc}, planned {spec.contents[name]}); restore them, or start "
                    "the sweep again"
                )
        images = load_split(pair, spec.protocol)
        _LAST_IMAGES.clear()
        _LAST_IMAGES[key] = images
    return _LAST_IMAGES[key]


def _before(
    spec: RunSpec, model: Model, parts: Mapping[str, Dataset], threads: int
) -> dict[str, Measured]:
    """Measure the untrained model, once for the runs of one corruption."""
    shift = [dict(spec.contents), spec.corruption, spec.severity, dict(spec.protocol)]
    key = json.dumps([*shift, sorted(parts)])
    if key not in _LAST_BEFORE:
        measured = _measured(model, parts, threads)
        _LAST_BEFORE.clear()
        _LAST_BEFORE[key] = measured
    return _LAST_BEFORE[key]


def _measured(model: Model, parts: Mapping[str, Dataset], threads: int) -> dict[str, Measured]:
    return {name: measure(model, data, threads=threads) for name, data in parts.items()}


def _parts(spec: RunSpec, images: Split) -> dict[str, Dataset]:
    """Return the images that a run is measured on: a trial on none of the test images."""
    parts = {"held_out": images.held_out}
    if not spec.trial:
        parts = {"test": images.test, "clean": images.clean_test, **parts}
    return {name: data for name, data in parts.items() if data is not None}
