"""Runs with other estimators, optimizers and losses of a user's own are told apart."""

import gc
import os
import re
import subprocess
import sys
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial

import numpy as np
import pytest
from networks import residual_network
from toy_trainer import Stop, data, stop_at

import pmt
from pmt.errors import OtherRunError
from pmt.train.extension_names import full_name, kept_names

SHORT = {"batch": 4, "epochs": 1, "preparation": "none", "layers": "head"}

CODE = '''
import numpy as np

FACTOR = 3


class Base:
    def scaled(self, value):
        """Return it scaled."""
        return value * FACTOR


class Own(Base):
    queries = 4

    def __init__(self, rate=0.5):
        self.rate, self.names = rate, {"b", "a", "c"}
        self.table = {"one": np.arange(3), "two": [1, 2.5, None, b"x"]}

    def __call__(self, engine, images, labels, step):
        # Nothing to be done.
        return {}
'''


def module(tmp_path, code=CODE, name="own"):
    path = tmp_path / f"{name}.py"
    path.write_text(code)
    namespace = {"__name__": name}
    exec(compile(code, str(path), "exec"), namespace)
    return namespace


@pytest.fixture
def own(tmp_path):
    return module(tmp_path)["Own"]


def test_a_name_is_the_same_in_every_process(tmp_path, own):
    name = full_name(own())
    assert name.startswith("Own ")
    assert len(name) == len("Own 12345678")
    code = (
        "from own import Own; from pmt.train.extension_names import full_name as f; print(f(Own()))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == name


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# Nothing to be done.", "# Nothing at all."),
        ('"""Return it scaled."""', '"""Return it."""'),
        ("value * FACTOR", "value*FACTOR"),
        ("value * FACTOR", "(value\n            * FACTOR)"),
        ("FACTOR = 3", "FACTOR = 4"),  # what is elsewhere is not compared
    ],
)
def test_comments_layout_and_what_is_elsewhere_are_not_compared(tmp_path, own, before, after):
    assert before in CODE
    edited = module(tmp_path, CODE.replace(before, after), "edited")["Own"]
    assert full_name(edited()) == full_name(own())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("queries = 4", "queries = 5"),
        ("rate=0.5", "rate=0.25"),
        ("return {}", "return {1: 2}"),
        ("value * FACTOR", "value / FACTOR"),  # of its base
        ("np.arange(3)", "np.arange(3.0)"),
        ("np.arange(3)", "np.arange(1, 4)"),
        ('"b", ', ""),
        ("2.5, None", "2.5, 0"),
    ],
)
def test_parameters_and_code_are_compared(tmp_path, own, before, after):
    assert before in CODE
    edited = module(tmp_path, CODE.replace(before, after), "edited")["Own"]
    assert full_name(edited()) != full_name(own())


def price(factor, table=(1,)):
    def loss(logits, labels, power=factor):
        return factor * table[0] * logits[..., 0] ** power

    return loss


@dataclass
class Holder:
    held: object

    def __call__(self): ...

    @cached_property
    def remembered(self):
        return 3


def test_whatever_is_held_is_compared():
    held = [
        *(price(1), price(2), price(1, np.ones(2)), partial(price, 1), partial(price, 2)),
        *(np.random.default_rng(1), np.random.default_rng(2), np.float64(1), np.int8(1), 1, 1.0),
        *(True, "1", None, np.sign, np.maximum, Holder(1), Holder(2), Holder(1).__call__),
        *(lambda a: a, lambda a: 2 * a, residual_network(), data(), threading.Lock(), np),
    ]
    names = [full_name(Holder(one)) for one in held]
    assert len({*names}) == len(held)
    assert names == [full_name(Holder(one)) for one in held]
    assert full_name(Holder(residual_network())) == full_name(Holder(residual_network()))
    used = Holder(1)
    assert used.remembered == 3
    assert full_name(used) == full_name(Holder(1))
    used.held = used
    assert full_name(used) == full_name(used)


def logging(factor=1.0):
    log, seen, kinds, table, count = [], {}, set(), np.zeros(2), 0

    def loss(logits, labels):
        nonlocal count
        count += 1
        _ = log.append(count)
        seen.setdefault("all", []).append(count)
        kinds.add(count % 3)
        table[0] += 1
        return factor * (logits**2).mean(-1)

    return loss


def both(factor=1.0):
    """A loss whose parameter and log are in one dict, which another function writes to."""
    held = {"factor": factor, "log": []}

    def write(value):
        held["log"].append(value)

    def loss(logits, labels):
        write(len(logits))
        return held["factor"] * (logits**2).mean(-1)

    return loss


class Counted:
    def __init__(self, factor=1.0):
        self.factor, self.calls = factor, 0

    def __call__(self, logits, labels):
        self.calls += 1
        return self.factor * (logits**2).mean(-1)


class Slotted:
    __slots__ = ("calls", "factor")

    __init__, __call__ = Counted.__init__, Counted.__call__


def test_what_a_run_changes_is_no_parameter():
    used, logits = logging(), np.ones((2, 3))
    name = full_name(used)
    with kept_names([used]):
        for _ in range(3):
            used(logits, None)
            with kept_names([used]):  # a step whose cost is measured
                assert full_name(used) == name
            assert full_name(used) == name
    assert [
        len(cell.cell_contents)
        for cell in used.__closure__
        if hasattr(cell.cell_contents, "__len__")
    ] == [3, 3, 1, 2]
    assert full_name(used) == name == full_name(logging())
    assert full_name(logging(2.0)) != name
    method = Counted()
    name = full_name(method.__call__)
    with kept_names([method.__call__]):
        method(logits, None)
    assert full_name(method.__call__) == name != full_name(method)
    used(logits, None)  # outside of a run
    assert full_name(used) != name


def reading(table):
    def loss(logits, labels):
        found = table.copy()
        return logits[..., 0] * found[0]

    return loss


def stating(table):
    def loss(logits, labels):
        table.sort()
        return logits[..., 0]

    return loss


def test_whatever_a_function_closes_over_is_a_parameter():
    assert full_name(reading([1])) != full_name(reading([2]))
    assert full_name(reading(np.ones(1))) != full_name(reading(np.zeros(1)))
    assert full_name(stating(Holder(1))) != full_name(stating(Holder(2)))
    assert full_name(stating([1])) != full_name(stating([2]))


class Anything:
    """Has every attribute that it is asked for."""

    def __init__(self, factor):
        self.factor = factor

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return np.random.default_rng().random()


class Wrapping:
    def __init__(self, function, factor):
        self.__wrapped__, self.factor = function, factor


class Sides:
    def __init__(self, factor):
        self._factor = factor

    @property
    def factor(self):
        return self._factor

    @factor.setter
    def factor(self, value):
        self._factor = value


@pytest.mark.parametrize(
    "made",
    [
        Anything,
        Counted,
        Sides,
        partial(Wrapping, price),
        lambda value: re.compile(f"a{value}"),
        lambda value: deque([value], maxlen=3),
        Enum("Kind", {"ONE": 1, "TWO": 2}),
        lambda value: partial(price, table=[value]),
        lambda value: both(value),
        lambda value: [0.5, value],
    ],
    ids=lambda made: getattr(made, "__name__", None),
)
def test_values_of_any_class_are_told_apart(made):
    assert full_name(Holder(made(1))) == full_name(Holder(made(1)))
    assert full_name(Holder(made(1))) != full_name(Holder(made(2)))
    assert full_name(made(1)) == full_name(made(1)) != full_name(made(2))


@pytest.mark.parametrize(
    "kind", [logging, both, Counted, lambda *given: Counted(*given).__call__, Slotted]
)
def test_a_run_whose_loss_logs_or_counts_is_resumed(tmp_path, kind):
    loss = kind()

    def fit(steps, loss=loss):
        trainer = pmt.ZOTrainer(threads=1, loss=loss, **SHORT)
        return trainer.fit(residual_network(), data(), out=tmp_path, progress=stop_at(steps))

    with pytest.raises(Stop):
        fit(2)
    assert fit(99).epochs == fit(99).epochs == fit(99, kind()).epochs
    with pytest.raises(OtherRunError):
        fit(99, kind(2.0))


def test_a_change_after_a_run_counts(tmp_path):
    loss = Counted()
    trainer = pmt.ZOTrainer(threads=1, loss=loss, **SHORT)
    trainer.fit(residual_network(), data(), out=tmp_path)
    assert loss.calls > 0
    assert trainer.extensions == {"loss": full_name(Counted())}
    loss.factor = 2.0
    with pytest.raises(OtherRunError, match=r"loss: there Counted [0-9a-f]{8}, here Counted "):
        trainer.fit(residual_network(), data(), out=tmp_path)


def test_an_object_that_a_run_has_changed_is_not_held():
    loss = Counted()
    with kept_names([loss]):
        loss.calls += 1
    assert full_name(loss) == full_name(Counted())
    seen = weakref.ref(loss)
    del loss
    gc.collect()
    assert seen() is None


def test_the_last_eight_objects_of_slots_are_held():
    used = [Slotted(), *(Slotted(2.0) for _ in range(20))]
    for one in (*used[1:], used[0]):
        with kept_names([one]):
            one.calls += 1
    assert full_name(used[0]) == full_name(Slotted())
    assert [full_name(one) == full_name(Slotted(2.0)) for one in used[1:]] == [False] * 13 + [
        True
    ] * 7
    del used, one
    gc.collect()
    assert sum(type(one) is Slotted for one in gc.get_objects()) == 8


def test_an_object_of_slots_that_each_run_leaves_alike_is_held_once():
    one, other = Slotted(), Slotted(2.0)
    for used in [one] * 8 + [other]:
        used.calls = 0
        with kept_names([used]):
            used.calls += 1
    assert full_name(one) == full_name(Slotted())


def test_a_measured_cost_changes_no_name():
    calls = []

    def estimator(engine, images, labels, step):
        calls.append(step)
        return {}

    trainer = pmt.ZOTrainer(estimator=estimator, **SHORT)
    before = trainer.extensions
    trainer.cost(residual_network())
    assert calls == [0]
    assert trainer.extensions == before


class Estimate:
    def __init__(self, size=1.0):
        self.size = size

    def __call__(self, engine, images, labels, step):
        return {layer: np.full(engine.weights(layer).shape, self.size) for layer in engine.layers}


class Step:
    def __init__(self, size=1):
        self.size = size

    def __call__(self, layer, gradient, learning_rate):
        return np.full(gradient.shape, self.size)


@pytest.mark.parametrize("steps", [99, 2], ids=["finished", "interrupted"])
@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("estimator", Estimate(), Estimate(2.0)),
        ("optimizer", Step(), Step(2)),
        ("loss", price(1), price(2)),
    ],
)
def test_a_folder_of_another_extension_is_refused(tmp_path, kind, first, second, steps):
    def fit(one):
        trainer = pmt.ZOTrainer(threads=1, **SHORT, **{kind: one})
        trainer.fit(residual_network(), data(), out=tmp_path, progress=stop_at(steps))

    if steps == 2:
        with pytest.raises(Stop):
            fit(first)
    else:
        fit(first)
    with pytest.raises(OtherRunError) as caught:
        fit(second)
    assert str(caught.value) == (
        f"out={str(tmp_path)!r} holds a run with other options or data; choose another folder, "
        f"give what it began with, or load the model that is in it: {kind}: there "
        f"{full_name(first)}, here {full_name(second)} (its parameters or its code differ)"
    )
    fit(first)


def test_a_change_of_the_object_counts_without_a_new_trainer():
    trainer = pmt.ZOTrainer(estimator=Estimate(), **SHORT)
    first = trainer.extensions
    trainer.estimator.size = 2.0
    assert first != trainer.extensions == {"estimator": full_name(Estimate(2.0))}
    assert pmt.ZOTrainer(**SHORT).extensions == {}


def test_the_code_of_a_function_without_source_counts():
    def loss(body):
        names = {}
        exec(f"def loss(logits, targets): return {body}", names)
        return names["loss"]

    assert full_name(loss("logits - targets")) == full_name(loss("logits - targets"))
    assert full_name(loss("logits - targets")) != full_name(loss("targets - logits"))
    assert full_name(loss("(logits - targets) ** 2")) != full_name(loss("(logits - targets) ** 3"))
