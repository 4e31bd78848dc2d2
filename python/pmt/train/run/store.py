"""Where a run keeps its states: in memory, or in a run folder from which it continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pmt._util.arrays import Array
from pmt.errors import FileError, OtherRunError
from pmt.model import Model
from pmt.model.layers import copy_parameters
from pmt.train.run.config import RunConfig, contents_of
from pmt.train.run.folder import RunFolder
from pmt.train.run.observers import Observer

if TYPE_CHECKING:
    from pmt.train.run.loop import Run


class MemoryStore(Observer):
    """Keeps the best state of a run in memory, and nothing of a run that is interrupted."""

    folder: RunFolder | None = None

    def __init__(self) -> None:
        self._best: bytes | None = None

    def is_done(self) -> bool:
        """Whether the run was finished before."""
        return False

    def open(self, run: Run, source: Mapping[str, Any]) -> None:
        """Begin the run, or take it back to its last checkpoint."""

    def resume(self, run: Run) -> None:
        """Restore observers and stepper from the checkpoint."""

    def record(self, record: dict[str, Any]) -> None:
        """Write a record."""

    def record_once(self, record: dict[str, Any]) -> None:
        """Write a record of a step unless it was written."""

    def save(self, run: Run) -> None:
        """Write a checkpoint; the model is a whole state."""

    def keep(self, run: Run, refit: bool = False) -> None:
        """Keep the model, the best so far, or that with its head trained on all images."""
        self._best = run.model.image()

    def best(self) -> Model:
        """Return the best state."""
        assert self._best is not None
        return Model(self._best)


class FolderStore(MemoryStore):
    """Writes records, checkpoints and the best state of a run to its folder, and resumes it."""

    folder: RunFolder

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._arrays: dict[str, Array] = {}

    def is_done(self) -> bool:
        """Whether the run was finished before."""
        return self.folder.done

    def open(self, run: Run, source: Mapping[str, Any]) -> None:
        """Create the folder, or take the run back to its checkpoint."""
        trainer, images = run.trainer, run.images
        config = RunConfig(
            trainer.options,
            source,
            contents_of(run.model, images.data, images.valid, images.given),
            trainer.name,
            extensions=trainer.extensions,
        )
        if not self.folder.exists():
            self.folder.create(run.model, config)
            return
        self._check_same_run(run, config)
        saved, run.step = self.folder.load_checkpoint()
        run.whole = run.step > 0 or self.folder.is_prepared(saved)
        copy_parameters(saved, run.model)
        for record in self.folder.keep_metrics_before(run.step):
            run.history.add(record)
        run.stopped = run.history.stopped
        self._arrays = self.folder.load_state(saved)

    def _check_same_run(self, run: Run, config: RunConfig) -> None:
        """Raise a ValueError that lists the differences, if the folder belongs to another run."""
        folder, trainer = self.folder, run.trainer
        differences = [f"trainer: there {folder.trainer()!r}, here {trainer.name!r}"]
        if folder.trainer() == trainer.name:
            there = folder.config(type(trainer.options))
            if folder.is_checkpoint(run.model):  # it came from this very run
                model_crc = there.contents.get("model_crc32", 0)
                config = replace(config, contents={**config.contents, "model_crc32": model_crc})
            differences = there.differences(config)
        if differences:
            raise OtherRunError(
                f"out={str(folder.path)!r} holds a run with other options or data; choose another "
                f"folder, give what it began with, or load the model that is in it: "
                f"{'; '.join(differences)}"
            )

    def resume(self, run: Run) -> None:
        """Restore the state beside the model; a ValueError says that it is damaged."""
        try:
            run.load_state(self._arrays)
        except (ValueError, IndexError) as error:  # an array of fewer axes, too
            problem = f"{error}; the run cannot be resumed"
            raise FileError(str(self.folder.path), [problem]) from error
        # The best model is written after its checkpoint, which a crash may have come between.
        best = run.history.best
        behind = best is not None and best["step"] + 1 == run.step > 0
        if behind and not self.folder.best_is_refit():
            self.folder.save_best(run.model, step=run.step)

    def record(self, record: dict[str, Any]) -> None:
        """Append a record to the metrics."""
        self.folder.append(record)

    def record_once(self, record: dict[str, Any]) -> None:
        """Append a record of a step to the metrics unless they end with it."""
        last = self.folder.read_metrics()[-1:]
        if not any(r["kind"] == "step" and r["step"] == record["step"] for r in last):
            self.folder.append(record)

    def save(self, run: Run) -> None:
        """Write a checkpoint."""
        self.folder.save_checkpoint(run.model, step=run.step, state=run.state())

    def keep(self, run: Run, refit: bool = False) -> None:
        """Write the best model."""
        self.folder.save_best(run.model, step=run.step, refit=refit)

    def best(self) -> Model:
        """Read the best model."""
        return Model(self.folder.best.read_bytes())

    def end(self, run: Run) -> None:
        """Name the classes that the model has learned, and mark the run as finished."""
        names = run.learned_classes()
        if names is not None:
            self.folder.name_classes(names)
        self.folder.finish()
