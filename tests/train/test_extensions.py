"""Estimators and optimizers of a user's own: what they get and give, and runs that resume."""

import runpy
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from networks import random_dataset, residual_network
from toy_trainer import Stop, data, stop_at

import pmt
from pmt.methods import resume_run
from pmt.train.extension_names import full_name
from pmt.train.run.folder import RunFolder

SHORT = {"batch": 4, "epochs": 3, "queries": 4, "preparation": "none", "layers": "B1,head"}


class Signs:
    """One-sided queries of shared random signs, from a count of its own."""

    def __init__(self, queries: int = 6) -> None:
        self.queries = queries
        self.count = 0

    def __call__(self, engine, images, labels, step):
        gradients = {}
        for layer in engine.layers:
            rng = np.random.default_rng([self.count, self.queries])
            self.count += 1
            shape = (self.queries, *engine.weights(layer).shape)
            signs = rng.choice(np.array([-2, 2], np.int8), shape)
            losses = engine.losses(images, labels, layer, signs).mean(axis=1)
            gradients[layer] = np.tensordot(losses - losses.mean(), signs, 1) / self.queries
        return gradients

    def state(self):
        return {"count": self.count}

    def load_state(self, state):
        self.count = int(state["count"])


class Momentum:
    """Steps of at most two, of a decaying sum."""

    def __init__(self) -> None:
        self.sums = {}

    def __call__(self, layer, gradient, learning_rate):
        self.sums[layer] = 0.9 * self.sums.get(layer, 0.0) + gradient
        scale = np.abs(self.sums[layer]).max() + 1e-30
        return -np.rint(2 * learning_rate / 0.1 * self.sums[layer] / scale).astype(int)

    def state(self):
        return self.sums

    def load_state(self, state):
        self.sums = dict(state)


class Half:
    def __call__(self, layer, gradient, learning_rate): ...
    def state(self): ...


def frozen(engine, images, labels, step):
    return {}


OWN = [
    {"estimator": Signs()},
    {"optimizer": Momentum()},
    {"estimator": Signs(), "optimizer": Momentum()},
]


def trainer(**changes):
    if "estimator" in changes:  # it does not read them
        changes = {"queries": pmt.TrainingOptions().queries, **changes}
    short = {k: v for k, v in SHORT.items() if k != "epochs" or "macs" not in changes}
    return pmt.ZOTrainer(threads=1, **{**short, **changes})


@pytest.mark.parametrize("own", OWN)
def test_an_interrupted_run_resumes_with_the_bytes_of_a_whole_one(tmp_path, own):
    whole = residual_network()
    result = trainer(**own).fit(whole, data(), valid=data(8, 5), progress=False)
    assert sum(epoch["changed"] for epoch in result.epochs) > 50
    for step in (2, 5):
        model, out = residual_network(), tmp_path / str(step)
        with pytest.raises(Stop):
            trainer(**own).fit(model, data(), valid=data(8, 5), out=out, progress=stop_at(step))
        resumed = trainer(**own).fit(
            residual_network(), data(), valid=data(8, 5), out=out, progress=False
        )
        assert resumed.model.image() == whole.image()
        drop = [{k: v for k, v in e.items() if k != "seconds"} for e in resumed.epochs]
        assert drop == [{k: v for k, v in e.items() if k != "seconds"} for e in result.epochs]


@pytest.mark.parametrize(
    "method",
    [{"optimizer": Momentum()}, {"estimator": Signs()}, "deepzero"],
    ids=["optimizer", "estimator", "deepzero"],
)
def test_a_step_interrupted_in_its_update_is_not_saved_and_a_whole_one_is(
    tmp_path, monkeypatch, method
):
    def started():
        if method == "deepzero":
            return pmt.methods.trainer("deepzero", threads=1, batch=4, epochs=3, layers="head")
        return trainer(**method)

    whole = residual_network()
    started().fit(whole, data(), out=tmp_path / "whole", progress=False)
    out, writes = tmp_path / "run", []
    write = pmt.Engine.set_weights

    def interrupted(engine, layer, weights):
        write(engine, layer, weights)
        writes.append(layer)
        if steps and steps[-1] == 2:
            raise Stop

    steps = []
    monkeypatch.setattr(pmt.Engine, "set_weights", interrupted)
    with pytest.raises(Stop):
        started().fit(
            residual_network(), data(), out=out, progress=lambda step, _: steps.append(step)
        )
    monkeypatch.undo()
    assert writes
    _, saved = RunFolder(out).load_checkpoint()
    assert saved == 0  # the last whole step that was saved before the interruption
    resumed = residual_network()
    started().fit(resumed, data(), out=out, progress=False)
    assert resumed.image() == whole.image()
    other = tmp_path / "other"
    with pytest.raises(Stop):
        started().fit(residual_network(), data(), out=other, progress=stop_at(2))
    assert RunFolder(other).load_checkpoint()[1] == 2


def test_every_run_begins_with_the_objects_as_they_were_given():
    own = trainer(estimator=Signs(), optimizer=Momentum())
    images = []
    for _ in range(2):
        model = residual_network()
        own.fit(model, data(), progress=False)
        images.append(model.image())
    assert images[0] == images[1]
    assert own.estimator.count == 0


class HalfMomentum(Momentum):
    def state_without_momentum(self):
        return {layer: sums / 2 for layer, sums in self.sums.items()}


class Recount(Signs):
    def state_without_momentum(self):
        return {"count": 100}


def test_after_a_step_back_the_optimizer_begins_anew_and_the_estimator_goes_on():
    def kept(estimator, optimizer):
        model, given = residual_network(), data()
        stepper = trainer(estimator=estimator, optimizer=optimizer).stepper(model, len(given))
        images, classes = model.prepare(given.images[:4]), given.labels[:4]
        for step in range(2):
            stepper.step(images, classes, step, 0.1)
        state = stepper.state_without_momentum()
        again = trainer(estimator=estimator, optimizer=optimizer).stepper(model, len(given))
        again.load_state(state)
        return again, stepper

    layers = len(residual_network().select_layers("B1,head"))
    again, stepper = kept(Signs(), Momentum())
    assert (again.estimator.count, again.optimizer.sums) == (2 * layers, {})
    assert len(stepper.optimizer.sums) == layers
    again, stepper = kept(Recount(), HalfMomentum())
    assert again.estimator.count == 100
    for layer, sums in stepper.optimizer.sums.items():
        np.testing.assert_array_equal(again.optimizer.sums[layer], sums / 2)


def test_a_step_back_of_a_run_gives_the_optimizer_no_sums(tmp_path):
    sizes = []

    class Watched(Momentum):
        def __call__(self, layer, gradient, learning_rate):
            sizes.append(len(self.sums))
            return 0 * super().__call__(layer, gradient, learning_rate) + 40

    model, given = residual_network(), data(12)
    own = trainer(optimizer=Watched(), keep_best=True, layers="head", train_bias=False)
    result = own.fit(model, given, held_out=data(40, 5), progress=False)
    assert [epoch.get("taken_back", False) for epoch in result.epochs] == [True] * 3
    assert sizes[1:] == [0, 1, 1] * 3  # the first step counts the work, on a copy


def test_after_a_step_back_of_a_run_an_estimator_without_a_state_goes_on():
    calls = []

    class Counting:
        count = 0

        def __call__(self, engine, images, labels, step):
            self.count += 1
            calls.append(self.count)
            return {layer: np.full(engine.weights(layer).shape, 9.0) for layer in engine.layers}

    model, given = residual_network(), data(12)
    own = trainer(estimator=Counting(), keep_best=True, layers="head", learning_rate=40.0)
    result = own.fit(model, given, held_out=data(40, 5), progress=False)
    assert [epoch.get("taken_back", False) for epoch in result.epochs] == [True] * 3
    assert calls[1:] == [*range(1, 10)]  # the first call counts the work, on a copy


def test_the_optimizer_gets_the_cores_gradients():
    seen = {}

    def spy(layer, gradient, learning_rate):
        seen[layer] = gradient
        return np.zeros(gradient.shape, int)

    model, given = residual_network(), data()
    options = trainer(rule="weight").options
    stepper = trainer(rule="weight", optimizer=spy).stepper(model, len(given))
    images, classes = model.prepare(given.images[:4]), given.labels[:4]
    result = stepper.step(images, classes, 3, 0.1)
    layers = model.select_layers("B1,head")
    core = pmt._core.Trainer(model.core, options.to_core(), layers, 4, 1)
    names = {layer.index: layer.name for layer in model.layers}
    for index, op in enumerate(layers):
        weights, bias = core.estimate(images, classes, 3, index)
        np.testing.assert_array_equal(seen[names[op]].reshape(-1), weights)
        np.testing.assert_array_equal(seen[names[op] + ".bias"], bias)
    assert result["changed"] == 0
    assert result["forwards"] == 4 * 4 * 3


@pytest.mark.filterwarnings("ignore:rule has no effect")
@pytest.mark.filterwarnings("ignore:bias_rate has no effect")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rounding": "nearest", "learning_rate": 2.0},
        {"step": "gradient", "learning_rate": 1e-3},
        {"step": "gradient", "learning_rate": 30.0, "quantization_aware_scaling": False},
        {"train_bias": False},
    ],
)
def test_the_cores_own_gradient_takes_the_cores_own_step(changes):
    changes = {"rule": "weight", "layers": "B1,B2", "bias_rate": 3.0, **changes}
    first, second, given = residual_network(), residual_network(), data()
    images, classes = first.prepare(given.images[:4]), given.labels[:4]

    def estimator(engine, images, labels, step):
        gradients = {}
        options = trainer(**changes).options
        layers = engine.model.select_layers(options.layers)
        core = pmt._core.Trainer(engine.model.core, options.to_core(), layers, 4, 1)
        for index, name in enumerate(engine.layers):
            weights, bias = core.estimate(images, labels, step, index)
            gradients[name] = weights.reshape(engine.weights(name).shape)
            gradients[name + ".bias"] = bias
        return gradients

    rate = trainer(**changes).options.learning_rate
    wanted = trainer(**changes).stepper(first, 13).step(images, classes, 0, rate)
    own = trainer(estimator=estimator, **changes).stepper(second, 13)
    found = own.step(images, classes, 0, rate)
    assert found["changed"] > 0
    assert {k: found[k] for k in ("loss", "loss_sum", "correct")} == {
        k: wanted[k] for k in ("loss", "loss_sum", "correct")
    }
    for layer in first.layers:
        a, b = (m.core.weights(layer.index).astype(int) for m in (first, second))
        assert np.abs(a - b).max() <= 1
        assert (a != b).mean() < 0.01  # a gradient as float32 is not the sum that made it
        a, b = (m.core.bias(layer.index).astype(int) for m in (first, second))
        assert np.abs(a - b).max() <= 1 + 1e-5 * np.abs(a).max()


def test_what_an_estimator_sets_is_taken_back_and_work_is_counted():
    def estimator(engine, images, labels, step):
        layer = engine.layers[0]
        engine.set_weights(layer, np.zeros_like(engine.weights(layer)))
        engine.set_bias(layer, np.zeros_like(engine.bias(layer)))
        engine.losses(images, labels)
        return {}

    model, given = residual_network(), replace(data(), class_names=tuple("0123"))
    before = model.image()
    own = trainer(estimator=estimator)
    result = own.fit(model, given, progress=False)
    assert model.image() == before
    assert result.epochs[-1]["forwards"] == 0
    assert result.epochs[-1]["macs"] == 9 * 2 * 4 * model.macs
    assert own.cost(model) == pmt.Cost(forwards=0, macs=2 * 4 * model.macs)
    assert own.cost(model, samples=3) == pmt.Cost(forwards=0, macs=2 * 3 * model.macs)
    step = trainer(estimator=Signs()).cost(model)
    assert step.forwards == 4 * 6 * 3
    last = trainer(estimator=Signs(), macs=3 * step.macs - 1).fit(model.copy(), given).epochs[-1]
    assert (last["step"], last["macs"]) == (1, 2 * step.macs)

    def failing(engine, images, labels, step):
        estimator(engine, images, labels, step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(estimator=failing).fit(model, given, progress=False)
    assert model.image() == before


SOURCE = {"model": "m", "data": "x", "corruption": "", "severity": 0, "limit": 0, "valid_limit": 0}


def test_config_names_what_is_the_users_and_a_resume_needs_it(tmp_path):
    own = trainer(estimator=Signs(), optimizer=Momentum())
    with pytest.raises(Stop):
        own.fit(
            residual_network(), data(), out=tmp_path / "run", progress=stop_at(2),
            source=SOURCE,
        )  # fmt: skip
    text = (tmp_path / "run" / "config.toml").read_text()
    signs, momentum = full_name(Signs()), full_name(Momentum())
    assert f'[extensions]\nestimator = "{signs}"\noptimizer = "{momentum}"\n' in text
    trainer().fit(residual_network(), data(), out=tmp_path / "plain")
    assert "extensions" not in (tmp_path / "plain" / "config.toml").read_text()
    assert RunFolder(tmp_path / "run").config().extensions == own.extensions
    with pytest.raises(ValueError, match="run with other options or data") as caught:
        trainer(optimizer=Momentum(), queries=8).fit(
            residual_network(), data(), out=tmp_path / "run", source=SOURCE
        )
    assert str(caught.value).endswith(f"model that is in it: estimator: there {signs}, here none")
    with pytest.raises(ValueError, match="trains with") as caught:
        resume_run(tmp_path / "run")
    assert str(caught.value) == (
        f"{tmp_path / 'run'}: the run trains with estimator={signs}, optimizer={momentum}, which "
        "no folder can hold; continue with the call that began it, or register them as a method "
        "and train by its name"
    )


@pytest.mark.parametrize(
    ("error", "text", "own"),
    [
        (TypeError, "estimator=Signs is a class; give an object: Signs(...)", {"estimator": Signs}),
        (
            TypeError,
            "optimizer=3 must be callable: a function, or an object with __call__",
            {"optimizer": 3},
        ),
        (
            ValueError,
            "scope='model_wise' perturbs all layers in one query; with an optimizer of your own "
            "use scope='layer_wise'",
            {"optimizer": Momentum(), "scope": "model_wise", "rule": "weight"},
        ),
        (
            TypeError,
            "optimizer=Half has state() without load_state(); a run needs both to resume, or "
            "neither",
            {"optimizer": Half()},
        ),
        *(
            (
                ValueError,
                f"loss={shown} is for the built-in estimators and updates; with an {kind} of your "
                "own use loss='cross_entropy'",
                {"loss": loss, kind: made},
            )
            for loss, shown in (("squared_error", "'squared_error'"), (divmod, "'python:divmod'"))
            for kind, made in (("estimator", frozen), ("optimizer", Momentum()))
        ),
    ],
)
def test_what_does_not_go_together_is_refused(error, text, own):
    with pytest.raises(error) as caught:
        trainer(**own)
    assert str(caught.value) == text


def test_own_gradients_lower_the_loss():
    model = residual_network()
    given = random_dataset(model, 32)
    start = model.evaluate(given).loss
    trainer(
        estimator=Signs(30), layers="head", batch=32, epochs=20, learning_rate=1.0, keep_best=False
    ).fit(model, given, progress=False)
    assert model.evaluate(given).loss < start - 0.03


@pytest.mark.filterwarnings("ignore:.*has no effect")
@pytest.mark.parametrize(
    "changes", [{"mu_bias": 100}, {"separate_biases": True}, {"nodes": "all", "mu_bias": 7}]
)
def test_options_of_built_in_queries_do_not_change_an_own_gradient_s_update(changes):
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train")[:100], "contrast", 5)

    def constant(engine, images, labels, step):
        arrays = {layer: np.zeros(engine.weights(layer).shape) for layer in engine.layers}
        biases = {f"{layer}.bias": np.full(engine.bias(layer).shape, 1e-3) for layer in arrays}
        return {**arrays, **biases}

    def trained(**changes):
        model = pmt.load("fashion_mnist_dscnn")
        options = {**SHORT, "layers": "B2", "step": "gradient", "learning_rate": 1e-3}
        pmt.ZOTrainer(estimator=constant, keep_best=False, **{**options, **changes}).fit(
            model, data, progress=False
        )
        return model.image()

    assert trained(**changes) == trained()


def ones(engine, images, labels, step):
    weights = {name: np.ones(engine.weights(name).shape) for name in engine.layers}
    return weights | {f"{name}.bias": np.ones(engine.bias(name).shape) for name in engine.layers}


def one_more(layer, gradient, learning_rate):
    return np.ones(gradient.shape, int)


def stepped(model, **changes):
    """Return which weights and biases of B2 a step of some trainer has changed."""
    before, given = model.copy(), data()
    own = trainer(**{"layers": "B2", "learning_rate": 9.0, **changes}).stepper(model, len(given))
    own.step(model.prepare(given.images[:4]), given.labels[:4], 0, 9.0)
    return [
        (model.weights(name) != before.weights(name), model.bias(name) != before.bias(name))
        for name in ("depth", "project")
    ]


BOTH = [
    {"estimator": ones},
    {"optimizer": one_more},
    {"estimator": ones, "optimizer": one_more},
]


@pytest.mark.parametrize("own", BOTH)
def test_weights_or_biases_alone_are_trained_by_every_combination(own):
    for weights, biases in stepped(residual_network(), train_weights=False, **own):
        assert not weights.any()
        assert biases.any()
    for weights, biases in stepped(residual_network(), train_bias=False, **own):
        assert weights.any()
        assert not biases.any()


@pytest.mark.parametrize("own", BOTH)
def test_dead_channels_stay_as_they_are(own):
    graph = residual_network().to_graph()
    for op in graph.ops[2:4]:
        op.weight_scales[1] = 4e-9
    (depth, depth_bias), (project, project_bias) = stepped(pmt.Model.from_graph(graph), **own)
    assert not depth[..., 1].any()
    assert not project[1].any()
    assert not depth_bias[1]
    assert not project_bias[1]
    assert depth[..., 2].any()
    assert project[2].any()


@pytest.mark.filterwarnings("ignore:bias_rate has no effect")
@pytest.mark.parametrize("own", [{}, {"estimator": Signs()}])
@pytest.mark.parametrize("part", ["", ".bias"])
def test_what_an_optimizer_leaves_is_moved_by_pmts_own_update(own, part):
    def partly(layer, gradient, learning_rate):
        if layer.endswith(".bias") == bool(part):
            return None
        return np.zeros(gradient.shape, int)

    models = [residual_network() for _ in range(3)]
    options = {"rule": "weight"} if not own else {}
    changes = {"bias_rate": 3.0, "layers": "B2", **options, **own}
    stepped(models[0], optimizer=partly, **changes)
    stepped(models[1], optimizer=lambda *_: None, **changes)
    changed = 0
    for name in ("depth", "project"):
        left, whole, untouched = (
            ((m.bias(name), m.weights(name)) if part else (m.weights(name), m.bias(name)))
            for m in models
        )
        np.testing.assert_array_equal(left[0], whole[0])
        np.testing.assert_array_equal(left[1], untouched[1])
        changed += (left[0] != untouched[0]).sum()
    assert changed > 0 or (own and part)  # that estimator has no gradients of biases


@pytest.mark.parametrize("name", ["adam", "momentum"])
def test_the_examples_leave_biases_to_pmts_own_update(name, monkeypatch):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    monkeypatch.setattr(pmt.methods, "register", lambda *_, **__: None)
    optimizer = runpy.run_path(str(path))[name.capitalize()]()
    assert optimizer("head.bias", np.ones(3), 0.1) is None
    assert optimizer("head", np.ones(3), 9.0).any()


class Uneven:
    """Takes some forwards of all images in its first step, and others later."""

    def __init__(self, first, later):
        self.forwards = (first, later)

    def __call__(self, engine, images, labels, step):
        for _ in range(self.forwards[step > 0]):
            engine.losses(images, labels)
        return {}


@pytest.mark.parametrize(
    ("forwards", "steps", "taken"),
    [((1, 1), 6, 12), ((1, 3), 3, 10), ((3, 1), 3, 8), ((9, 1), 1, 10), ((1, 99), 2, 102)],
)
def test_a_budget_is_not_exceeded_by_steps_that_take_more(tmp_path, forwards, steps, taken):
    model, given = residual_network(), data()
    macs = 4 * model.macs  # of a forward of a batch; a step takes one of its own

    def fit(**more):
        own = trainer(estimator=Uneven(*forwards), macs=12 * macs, keep_best=False)
        return own.fit(residual_network(), given, **{"progress": False, **more})

    def warned(**more):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fit(**more)
        return result.epochs[-1], [str(one.message) for one in caught if one.filename == __file__]

    last, messages = warned()
    assert (last["step"] + 1, last["macs"]) == (steps, taken * macs)
    planned = 12 // (forwards[0] + 1)
    said = [
        f"macs={12 * macs}: the run ended after {steps} of {planned} planned steps, which took "
        f"{taken * macs} of the {12 * macs} multiply-accumulates left for steps; they were planned "
        f"by {(forwards[0] + 1) * macs} a step, and differ: give epochs instead, or let all steps "
        "take the same work"
    ]
    assert messages == (said if steps < planned or not 6 <= taken <= 12 else [])
    with pytest.raises(Stop):
        fit(out=tmp_path, progress=stop_at(1))
    again, _ = warned(out=tmp_path)
    assert (again["step"], again["macs"]) == (last["step"], last["macs"])
    assert warned(out=tmp_path)[1] == []  # finished
