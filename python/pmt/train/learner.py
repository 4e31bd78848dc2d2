"""A device that learns by itself, on a PC: the core that runs on a microcontroller, byte for byte.

It predicts, takes samples in, aligns its network to them, solves its head, compares the states on
samples held out, and keeps the best one. All of it is slices of forward passes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.arrays import FloatArray
from pmt._util.checks import (
    checked_array,
    checked_flag,
    checked_path,
    checked_range,
    checked_word,
    kind_of,
    warn_of_argument,
)
from pmt._util.text import counted
from pmt.model import Model
from pmt.model.input_conversion import images_in_shape
from pmt.model.model import check_model
from pmt.net.image import read_stage
from pmt.train.learner_setup import (
    LearnerSizes,
    aligned_weights,
    check_clean,
    epochs_of,
    learner_image,
    learner_room,
    plan_sizes,
)
from pmt.train.options import TrainingOptions
from pmt.train.prepare.clean_statistics import check_some, prepared_images, without_statistics
from pmt.train.prepare.input_choice import with_any_stage
from pmt.train.state_file import StateFile

# A test compares them with the core's words.
LearnerRole = Literal["train", "hold_out", "automatic"]
LearnerPhase = Literal["input", "align", "head", "head_alone", "epochs", "all", "evaluate"]

_LOSS_ONE = float(_core.LOSS_ONE)


class LearnedPredictions(NamedTuple):
    """Predictions of N images.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
        The class of the largest logit; of a model with one output, whether it is above 0.
    margins : ndarray of float32, shape (N,)
        How much larger it is than the next one; of one output, its distance from 0.
    logits : ndarray of float32, shape (N, classes)
        As the board has them.
    """

    labels: npt.NDArray[np.int64]
    margins: FloatArray
    logits: FloatArray


@dataclass(frozen=True)
class LearnerScore:
    """A state on the samples held out: mean ``loss`` in nats, ``accuracy`` 0..1, ``samples``."""

    loss: float
    accuracy: float
    samples: int


class Learner:
    """A learner on this machine.

    Parameters
    ----------
    model : Model
        A model; with statistics of clean images, which ``pmt statistics`` adds, it can be aligned.
        It does not change.
    windows : bool
        Align windows before the channels, as :func:`pmt.align` does: their layers' weights stand in
        RAM. The model holds statistics of windows.
    reliability : bool
        Weigh channels by their reliability, too, where the windows tell of noise, as
        :func:`pmt.align` does: the weights of nearly all layers stand in RAM. Needs ``windows``.
    choose_input : bool
        Choose filters before the network, too: samples are frames of the model's
        :attr:`pmt.Model.image_shape`, as the camera gives them. The model holds statistics.
    samples : int
        Most samples; 0 for one that only predicts.
    held_out : int, optional
        Most of them that are held out to choose a state; by default a quarter.
    keeps_confirmed : bool
        Whether the confirmed state stays in memory while another one is learned.
    keeps_activations : bool
        Whether alignment keeps activations of the samples in memory of their own, a device's
        external one: it takes two forwards a sample at most, not one a layer, and has the same
        result.
    options : TrainingOptions, optional
        Epochs of perturbed forwards, as the phase ``"epochs"``: which layers, how many epochs, and
        how; by default there are none. A preparation is another phase's.
    select : sequence of str, optional
        Blocks or layers to choose from, several joined by ``+``, in place of the options'
        ``layers``: epochs begin with one of each from the same state, and go on with the one whose
        held-out loss is the least, from that state again, as :func:`pmt.select` chooses.
    storage : str or path, optional
        File that holds states beyond this process, made where it is missing; of one model, of the
        same layers to train, and of the same choice of windows and reliability. It is this
        learner's alone; a newer one of this process takes it over, which is no boot of a state on
        trial.

    Warns
    -----
    UserWarning
        If a state in the file is damaged, or of another version of pmt.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its range, or the file holds states of others or anything else, or
        was cut off.
    OSError
        If the file cannot be read or written; a :class:`pmt.errors.FolderBusyError` if another
        process has it.
    """

    def __init__(
        self,
        model: Model,
        *,
        windows: bool = False,
        reliability: bool = False,
        choose_input: bool = False,
        samples: int = 256,
        held_out: int | None = None,
        keeps_confirmed: bool = True,
        keeps_activations: bool = False,
        options: TrainingOptions | None = None,
        select: Sequence[str] | None = None,
        storage: str | os.PathLike[str] | None = None,
    ) -> None:
        check_model(model)
        checked_flag("windows", windows)
        checked_flag("reliability", reliability)
        checked_flag("choose_input", choose_input)
        checked_flag("keeps_confirmed", keeps_confirmed)
        checked_flag("keeps_activations", keeps_activations)
        samples, held_out = learner_room(
            samples,
            held_out,
            choose_input,
            options=options,
            select=select,
            storage=storage,
            windows=windows or None,
            reliability=reliability or None,
            keeps_activations=keeps_activations or None,
        )
        weights = aligned_weights(windows, reliability)
        if choose_input:
            model = with_any_stage(model)
        self._model = without_statistics(model)
        self._takes_frames = choose_input
        image, clean = learner_image(model, samples, weights, choose_input)
        check_clean(clean, choose_input, keeps_activations)
        place = None if storage is None else checked_path("storage", storage)
        epochs = epochs_of(model, options, samples, select)
        self._select = () if select is None else tuple(select)
        keeps = (keeps_confirmed, keeps_activations)
        sizes = (image, clean, weights, choose_input, samples, held_out, *keeps, epochs)
        size = _core.state_file_bytes(image, weights, epochs)
        self._states = None if place is None else StateFile(place, size)
        with nullcontext() if self._states is None else self._states.storing():
            stored = b"" if place is None else os.fsencode(place)
            goes_on = self._states is not None and self._states.trial_goes_on
            self._core = _core.Learner(*sizes, stored, goes_on)
        if self._states is not None:
            self._states.on_trial = self.on_trial
        if self._core.replaces_others:
            raise ValueError(
                f"storage={str(place)!r} holds states of another model, of other layers to train, "
                "or of another choice of windows=, reliability= or choose_input=: choose another "
                "file"
            )
        if place is not None and self._core.is_cut_off:
            raise ValueError(
                f"storage={str(place)!r} has {counted(place.stat().st_size, 'byte')}, and the "
                f"states of this learner take {size:,}: the file was cut off; bring back a copy of "
                "it, or delete it to begin with the original network"
            )
        if self._core.finds_damage:
            warn_of_argument(
                UserWarning(
                    f"storage={str(place)!r} holds a state that is damaged, or of another version "
                    f"of pmt, and the {self.in_force} one is in force; bring back a copy of the "
                    "file, or go on: commit() may write over it"
                )
            )
        self._sizes, self._samples, self._clean = sizes, samples, clean
        self._overwrites = not keeps_confirmed and self._states is None

    def observe(
        self,
        images: npt.NDArray[np.uint8],
        labels: npt.ArrayLike | None = None,
        *,
        role: LearnerRole = "automatic",
    ) -> None:
        """Take samples in.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels)
            Pixels 0..255, of the model's :attr:`pmt.Model.image_shape`; or other inputs, see
            :meth:`pmt.Model.prepare`, but not where filters are chosen.
        labels : array of int, shape (N,), optional
            Classes, or 0 and 1 of a model with one output; -1 where one is not known; by default
            none is.
        role : {"automatic", "train", "hold_out"}
            What they are for; ``"automatic"`` holds out a fifth of the labeled ones, of every
            class about a fifth, and ``"hold_out"`` takes labeled ones alone.

        Raises
        ------
        TypeError, ValueError
            As :meth:`pmt.Model.prepare`, or if a phase runs, or a label is missing or outside the
            classes.
        ValueError
            If there is no room; those before are taken in.
        """
        checked_word("role", role, _core.LEARNER_ROLES)
        self._need_samples("observe()")
        self._refuse_while_running("observe()")
        inputs = self._inputs(images)
        given = np.full(len(inputs), -1) if labels is None else checked_array("labels", labels)
        if given.dtype.kind not in "iu":
            raise TypeError(
                f"labels must be integers, got {given.dtype}; give each class's place in the "
                "model's class_names, or -1"
            )
        if role == "hold_out" and (labels is None or (given < 0).any()):
            raise ValueError(
                "role='hold_out' needs a label for each image, by which states are compared, and "
                f"{'labels are not given' if labels is None else 'some are -1'}: give them, or "
                "take role='automatic'"
            )
        largest = np.iinfo(np.int64).max  # what is beyond it would become another label
        given = np.minimum(given, largest) if given.dtype == np.uint64 else given
        self._core.observe(inputs, np.ascontiguousarray(given, np.int64), role)

    def predict(self, images: npt.NDArray[np.uint8]) -> LearnedPredictions:
        """Predict by the state in force, also between two slices of a phase.

        Images are those of :meth:`observe`.
        """
        self._need_force("predict()")
        return LearnedPredictions(*self._core.predict(self._inputs(images)))

    def begin(self, phase: LearnerPhase = "all") -> None:
        """Start a phase on the samples that are there.

        Parameters
        ----------
        phase : {"all", "input", "align", "head", "head_alone", "epochs", "evaluate"}
            The choice of filters, with alignment behind them; alignment; neither takes labels. The
            head of the aligned model; that of the original; epochs from the candidate on, where
            options name some, and the choice of a block before them, where there are several; all
            of them. ``"evaluate"`` learns nothing: it scores the state in force, also one on trial,
            and the candidate on the samples held out.

        Raises
        ------
        ValueError
            If the model or the samples do not suffice, a phase runs, a state is on trial, or the
            state in force, with which others are compared, is overwritten.
        """
        checked_word("phase", phase, _core.LEARNER_PHASES)
        self._need_samples("begin()")
        if phase == "epochs" and self._sizes[-1] is None:
            raise ValueError("phase='epochs' needs options, which name the layers to train")
        self._refuse_while_running("begin()")
        self._need_force("begin()")
        if self.on_trial and phase != "evaluate":
            raise ValueError("begin() needs a state that is confirmed: confirm() or roll_back()")
        overwrites = self._overwrites and phase != "evaluate"
        if overwrites and self.in_force != "original":
            raise ValueError(
                "begin() would overwrite the state in force for good: give keeps_confirmed=True, "
                "or a storage="
            )
        if phase == "align" and self._clean is None:
            raise ValueError(
                "phase='align' needs a model with statistics of clean images, and this learner's "
                "holds none; make one of pmt.statistics(model, images) (pmt statistics), which "
                "adds them"
            )
        if phase == "input" and not self._takes_frames:
            raise ValueError(
                "phase='input' needs a learner of choose_input=True, whose samples are frames of "
                "the camera; make one, or take phase='align'"
            )
        if phase in ("head", "head_alone") and not self._model.core.has_linear_head:
            raise ValueError(
                f"phase={phase!r}: the model's last layer is not a linear head (fully connected), "
                "which alone can be solved; take phase='align'"
            )
        self._core.begin(phase)

    def run(self, steps: int = 0, milliseconds: int = 0) -> bool:
        """Go on with the phase.

        Parameters
        ----------
        steps, milliseconds : int
            Where to stop, 0 for no limit; a step is a forward of an image to one layer, or a few
            passes over its features. Results do not depend on it.

        Returns
        -------
        bool
            Whether the phase is over.
        """
        steps = checked_range("steps", steps, 0, 2**31 - 1)
        return self._core.run(steps, checked_range("milliseconds", milliseconds, 0, 2**31 - 1))

    def learn(self, phase: LearnerPhase = "all") -> str:
        """Run a phase to its end; return the candidate."""
        self.begin(phase)
        self.run()
        return self.candidate

    def forget(self) -> None:
        """Forget all samples and the candidate; the state in force stays."""
        self._refuse_while_running("forget()")
        self._core.forget()

    def cancel(self) -> None:
        """End a phase, or drop its candidate; the state in force stays."""
        with self._storing():
            self._core.cancel()

    def commit(self) -> None:
        """Put the candidate in force, on trial; the storage has it first.

        Where that fails (OSError), the state in force stays, unless the error says that the states
        are stored.
        """
        self._refuse_while_running("commit()")
        if self.candidate == "original":
            raise ValueError("commit() needs a candidate: no state is better than the one in force")
        with self._storing():
            self._core.commit()

    def confirm(self) -> None:
        """Keep the state that is on trial.

        Where it was damaged in the storage meanwhile (ValueError), it stays on trial.
        """
        self._refuse_while_running("confirm()")
        self._need_trial("confirm()")
        with self._storing():
            self._core.confirm()

    def roll_back(self) -> None:
        """Put the confirmed state in force again, in place of the one on trial.

        Where that is damaged in the storage (ValueError), the original network is in force.
        """
        self._refuse_while_running("roll_back()")
        self._need_trial("roll_back()")
        with self._storing():
            self._core.roll_back()

    @property
    def candidate(self) -> str:
        """The best state that phases have found; ``"original"``: the one in force."""
        return self._core.candidate

    @property
    def in_force(self) -> str:
        """The state that predicts."""
        return self._core.in_force

    @property
    def on_trial(self) -> bool:
        """Whether that is neither confirmed nor rolled back."""
        return self._core.on_trial

    @property
    def scores(self) -> Mapping[str, LearnerScore]:
        """Scores of the states since :meth:`begin`; ``"original"`` is the one then in force."""
        return _scores({state: self.fixed_score(state) for state in _core.LEARNER_STATES})

    @property
    def trials(self) -> dict[str, LearnerScore]:
        """Scores of the blocks that epochs have chosen among, after one epoch of each."""
        return _scores({name: self._core.trial(i) for i, name in enumerate(self._select)})

    @property
    def selected(self) -> str | None:
        """The one of ``select`` that the candidate, or the state in force, was trained by."""
        is_trained = "trained" in (self.candidate, self.in_force)
        return self._select[self._core.block] if self._select and is_trained else None

    def fixed_score(self, state: str) -> tuple[int, int, int]:
        """Return the sum of the losses (fixed-point), correct samples and samples, as a board."""
        return self._core.held_out(checked_word("state", state, _core.LEARNER_STATES))

    @property
    def checksum(self) -> int:
        """CRC-32 of the parameters in force that are not the model's own."""
        return self._core.checksum

    @property
    def steps(self) -> int:
        """Steps since :meth:`begin`."""
        return self._core.steps

    @property
    def sizes(self) -> LearnerSizes:
        """Memory of the same learner on a microcontroller."""
        return plan_sizes(*self._sizes)

    def model(self) -> Model:
        """Return the model with the parameters in force, without statistics of clean images.

        It is refused where :meth:`predict` is. A learner made of it aligns once
        :func:`pmt.statistics` has added statistics.
        """
        self._need_force("model()")
        model = Model(self._core.image_in_force())
        section = self._core.stage_in_force()
        return model.with_input_stage(read_stage(section)) if section else model

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Learner cannot be copied or pickled: take its model(), or another Learner with a "
            "storage= of its own"
        )

    def __repr__(self) -> str:
        trial = ", on trial" if self.on_trial else ""
        return (
            f"<Learner: {counted(self._core.samples, 'sample')}, {self.in_force} in force{trial}>"
        )

    def _inputs(self, images: npt.NDArray[Any]) -> npt.NDArray[np.int8] | npt.NDArray[np.uint8]:
        if not self._takes_frames:
            return prepared_images(self._model, images)
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
            raise TypeError(f"images must be uint8 pixels to choose filters, got {kind_of(images)}")
        check_some(images)
        return np.ascontiguousarray(images_in_shape(images, self._model.image_shape))

    def _refuse_while_running(self, call: str) -> None:
        if self._core.is_running:
            raise ValueError(f"{call} cannot be called while a phase runs: run() it, or cancel()")

    def _need_samples(self, call: str) -> None:
        if self._samples == 0:
            raise ValueError(f"{call} needs samples: the learner has samples=0, and only predicts")

    @contextmanager
    def _storing(self) -> Iterator[None]:
        if self._states is None:
            yield
            return
        with self._states.storing(self._core):
            yield
            self._states.on_trial = self.on_trial

    def _need_force(self, call: str) -> None:
        if not self._core.has_force:
            raise ValueError(
                f"{call} needs the state in force, which a phase has overwritten, for the learner "
                "has keeps_confirmed=False: commit() its candidate, or cancel()"
            )

    def _need_trial(self, call: str) -> None:
        if not self.on_trial:
            raise ValueError(f"{call} needs a state on trial: commit() puts one there")


def _scores(fixed: Mapping[str, tuple[int, int, int]]) -> dict[str, LearnerScore]:
    """Return the scores that have samples, from fixed-point sums of losses."""
    return {
        name: LearnerScore(loss / count / _LOSS_ONE, correct / count, count)
        for name, (loss, correct, count) in fixed.items()
        if count > 0
    }
