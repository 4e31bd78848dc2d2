"""Calls from several threads at once, and in forked processes: refused or right, never a crash."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import pmt
from pmt import _core

TRAINED = (
    "the model is being trained, measured or changed by another call; "
    "wait until that returns, or read a Model.copy() made before it"
)
IN_USE = (
    "the model is in use by another call, and a call that trains, measures or changes it runs "
    "alone; wait until the other returns, or give each thread a Model.copy()"
)


class Step:
    """A long step in a thread of its own; ``refused`` is what a call beside it says."""

    def __init__(self) -> None:
        self.model = pmt.load("fashion_mnist_dscnn").core
        self.images = np.zeros((20, 28, 28, 1), np.int8)
        self.labels = np.zeros(20, np.int64)
        self.layers = self.model.blocks()["all"]
        options = pmt.preset("default", queries=60).to_core()
        self.trainer = _core.Trainer(self.model, options, self.layers, 20, 1)
        self.statistics = _core.Statistics(self.model, self.images, 1)
        self.profiler = _core.Profiler(self.model, self.images)
        self.device = pmt.preset("default").to_core()

    def step(self) -> None:
        self.trainer.step(self.images, self.labels, 0, 1.0)

    def step_undisturbed(self) -> None:
        while True:
            try:
                return self.step()
            except pmt.errors.ModelBusyError:  # is_running() looked just then
                continue

    def is_running(self) -> bool:
        try:
            self.model.bias(LAYER)
        except pmt.errors.ModelBusyError:
            return True
        return False

    def refused(self, call) -> str:
        """Return what ``call`` is told while the step runs; empty where the step was too short."""
        thread = threading.Thread(target=self.step_undisturbed)
        thread.start()
        while thread.is_alive():
            if not self.is_running():
                continue
            try:
                call(self)
            except pmt.errors.ModelBusyError as error:
                thread.join()
                return str(error)
        return ""


LAYER = 0
READS = {
    "logits": lambda s: s.model.logits(s.images, 1),
    "inputs": lambda s: s.model.inputs(s.images, LAYER, 1),
    "activations": lambda s: s.model.activations(s.images[0]),
    "image": lambda s: s.model.image(),
    "weights": lambda s: s.model.weights(LAYER),
    "bias": lambda s: s.model.bias(LAYER),
    "weight_scales": lambda s: s.model.weight_scales(LAYER),
    "surprisal": lambda s: s.trainer.surprisal(),
    "layers": lambda s: s.trainer.layers(),
    "steps_begun": lambda s: s.trainer.steps_begun,
    "Trainer": lambda s: _core.Trainer(s.model, s.device, s.layers, 1, 1),
    "Statistics": lambda s: _core.Statistics(s.model, s.images, 1),
    "DeviceMemory": lambda s: _core.DeviceMemory(s.model, s.device, s.layers, 1),
}
RUNS_ALONE = {
    "step": lambda s: s.step(),
    "estimate": lambda s: s.trainer.estimate(s.images, s.labels, 0, 0),
    "restore_surprisal": lambda s: s.trainer.restore_surprisal(np.zeros(0, np.float32)),
    "another trainer": lambda s: another(s).step(s.images, s.labels, 0, 1.0),
    "set_parameters": lambda s: s.model.set_parameters(LAYER, *PARAMETERS),
    "set_weight_scales": lambda s: s.model.set_weight_scales(LAYER, SCALES),
    "measure": lambda s: s.statistics.measure(LAYER, STATISTICS, 1),
    "align": lambda s: s.statistics.align(LAYER, STATISTICS, STATISTICS),
    "time_ops": lambda s: s.profiler.time_ops(),
    "time_op": lambda s: s.profiler.time_op(0),
    "select_layers": lambda s: _core.select_layers(
        s.model,
        pmt.preset("default", queries=2).to_core(),
        [s.layers],
        s.images[:1],
        s.labels[:1],
        np.ones(1, np.float32),
        s.images[:1],
        s.labels[:1],
        1,
    ),
}
_CORE = pmt.load("fashion_mnist_dscnn").core
PARAMETERS = (_CORE.weights(LAYER), _CORE.bias(LAYER))
SCALES = _CORE.weight_scales(LAYER)
STATISTICS = np.ones((2, len(SCALES)), np.float32)
ANOTHER: dict[int, _core.Trainer] = {}


def another(step: Step) -> _core.Trainer:
    """Return a second trainer of the same model, opened while nobody used it."""
    return ANOTHER[id(step)]


@pytest.mark.parametrize("name", READS)
def test_a_model_in_training_is_not_read(name):
    assert Step().refused(READS[name]) == TRAINED


@pytest.mark.parametrize("name", RUNS_ALONE)
def test_what_trains_measures_or_changes_a_model_runs_alone(name):
    step = Step()
    ANOTHER[id(step)] = _core.Trainer(step.model, step.device, step.layers, 20, 1)
    assert step.refused(RUNS_ALONE[name]) == IN_USE
    step.model.logits(step.images, 1)  # nothing stays locked
    step.trainer.surprisal()


def test_many_threads_may_read_a_model():
    model = pmt.load("fashion_mnist_dscnn")
    images = np.random.default_rng(0).integers(0, 256, (64, 28, 28, 1)).astype(np.uint8)
    expected = model.logits(images, threads=1)
    found: list[bool] = []

    def read() -> None:
        for _ in range(5):
            found.append(np.array_equal(model.logits(images, threads=1), expected))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_a_refused_step_and_a_failed_one_leave_the_model_free():
    step = Step()
    with pytest.raises(ValueError, match="batch"):
        step.trainer.step(np.zeros((21, 28, 28, 1), np.int8), np.zeros(21, np.int64), 0, 1.0)
    step.trainer.estimate(step.images[:1], step.labels[:1], 0, 0)
    step.model.image()


FORKED = """
import os, sys
import numpy as np
import pmt
from pmt import _core

model = pmt.load("fashion_mnist_dscnn")
images = np.random.default_rng(0).integers(0, 256, (64, 28, 28, 1)).astype(np.uint8)
prepared, labels = model.prepare(images), np.zeros(64, np.int64)
layers = model.blocks["head"]
trainer = _core.Trainer(model.core, pmt.preset("default", queries=4).to_core(), layers, 64, 2)
expected = model.logits(images, threads=2)
assert trainer.threads == 2
pid = os.fork()
if pid == 0:
    same = np.array_equal(model.logits(images, threads=2), expected)
    _core.peak(2)
    trainer.step(prepared, labels, 0, 1.0)
    print(same, _core.threads(2), _core.threads(0), model.core.bias(layers[0]).tolist())
    sys.stdout.flush()
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if np.array_equal(model.copy().logits(images, threads=2).shape, (64, 10)) else 1)
    os._exit(os.waitpid(grandchild, 0)[1])
assert os.waitpid(pid, 0)[1] == 0
trainer.step(prepared, labels, 0, 1.0)
print(True, 1, 1, model.core.bias(layers[0]).tolist())
assert _core.threads(2) == 2
"""


def test_a_forked_process_computes_the_same_on_one_thread():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True
    )
    child, parent = done.stdout.splitlines()
    assert child.startswith("True 1 1 [")
    assert child == parent


def test_a_fork_before_any_threads_were_used_may_use_them():
    script = FORKED.split("expected =", maxsplit=1)[0] + (
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    model.logits(images, threads=2)\n"
        "    os._exit(0 if _core.threads(2) == 2 else 1)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)
