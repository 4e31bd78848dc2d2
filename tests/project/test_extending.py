"""docs/guides/extending.md shows the files of examples/, and these run."""

import importlib.util
import re
import runpy
import shlex
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from required import need
from toy_trainer import Stop, stop_at

import pmt
from pages import code_blocks, run_block
from pmt.cli import main
from pmt.methods import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "extending.md").read_text()
OWN = ("own_loss", "own_estimator", "own_optimizer", "own_method")
NUMBERS = re.compile(r"(\d\.\d+) -> (\d\.\d+)")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Run in an empty folder, and register nothing for other tests."""
    known = [(one, dict(one)) for one in (registry.METHODS, registry.KINDS)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_LOADED", set())
    monkeypatch.setenv("PMT_PLUGINS", "")
    yield
    for one, before in known:
        one.clear()
        one.update(before)


@pytest.mark.parametrize("name", OWN)
def test_an_example_is_30_lines_at_most_and_stands_on_the_page(name):
    text = (ROOT / "examples" / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 30
    assert f"```python\n{text}```" in PAGE


def test_the_engine_and_the_samples_of_the_core_are_written_as_shown():
    programs = [text for kind, text in code_blocks("guides/extending.md") if kind == "python"]
    names = {}
    run_block("python", programs[0], names)
    assert names["losses"].shape == (100, 10)
    run_block("python", programs[-1], {})
    assert Path("samples.bin").stat().st_size == 25 * (1 + 28 * 28)
    assert pmt.load("model.pmt").image() == pmt.load("fashion_mnist_dscnn").image()


def test_the_loss_becomes_what_the_page_says(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_loss.py"))
    printed = capsys.readouterr().out.strip()
    assert f"It prints `{printed}`." in PAGE


def test_the_estimator_learns_what_the_page_says(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_estimator.py"))
    before, after = map(float, NUMBERS.search(capsys.readouterr().out).groups())
    shown = re.search(r"It prints `(\S+) -> (\S+)`", PAGE).groups()
    assert before == float(shown[0])
    assert after == pytest.approx(float(shown[1]), abs=0.02)  # NumPy's sums differ by machine


def test_the_optimizer_learns_and_its_finished_run_is_returned(capsys):
    for _ in range(2):
        runpy.run_path(str(ROOT / "examples" / "own_optimizer.py"))
    first, second = NUMBERS.findall(capsys.readouterr().out)
    assert float(first[1]) < float(first[0]) - 0.05
    assert second == first


def test_the_method_trains_and_resumes_by_the_commands_of_the_page(capsys):
    commands = re.findall(r"^pmt (train .*own_method.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    printed = []
    for command in commands:
        shown = command.replace("examples/", f"{ROOT}/examples/")
        assert main(shlex.split(shown)) == 0
        printed.append(capsys.readouterr().out)
    assert "gradients by votes" in printed[0]
    before, after = map(float, re.search(r"^accuracy (\S+) -> (\S+),", printed[0], re.M).groups())
    assert after > before + 0.1
    assert printed[0].splitlines()[-3:] == printed[1].splitlines()[-3:]


def example(name: str, run_name: str = "example") -> dict:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name=run_name)


def test_the_page_names_every_other_example():
    shown = re.findall(r"`(\w+)\.py`", PAGE.partition("## More examples")[2])
    files = {path.stem for path in (ROOT / "examples").glob("*.py")} - {*OWN, "own_embedding"}
    assert files == set(shown) - {"deepzero"}


def test_hadamard_directions_learn_more_than_random_ones(capsys):
    example("hadamard", "__main__")
    before, after = map(float, NUMBERS.search(capsys.readouterr().out).groups())
    assert after > before + 0.15


def test_hadamard_directions_are_orthogonal():
    asked = []

    class Recorded(pmt.Engine):
        def losses(self, images, labels, layer, weights):
            asked.append(weights.reshape(len(weights), -1).astype(int))
            return super().losses(images, labels, layer, weights)

    engine = Recorded(pmt.load("fashion_mnist_dscnn"), "head")
    data = pmt.datasets.bundled("train").take(3)
    example("hadamard")["Hadamard"]()(engine, data.images, data.labels, 0)
    (signs,) = asked
    assert np.array_equal(signs @ signs.T, 16 * signs.shape[1] * np.eye(64, dtype=int))


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_an_optimizer_with_a_state_trains_and_resumes_as_a_method(name):
    example(name)
    data = pmt.datasets.bundled("train").take(12)
    options = {"layers": "B1,head", "epochs": 1, "batch": 4, "queries": 2, "threads": 1}
    for folder, progress in (("whole", False), ("begun", stop_at(1))):
        trainer = pmt.methods.trainer(name, **options)
        with pytest.raises(Stop) if progress else nullcontext():
            trainer.fit(pmt.load("fashion_mnist_dscnn"), data, out=folder, progress=progress)
    begun = pmt.RunFolder("begun")
    model, _ = begun.load_checkpoint()
    pmt.methods.resumed_trainer(begun, threads=1).fit(model, data, out=begun, progress=False)
    assert begun.checkpoint.read_bytes() == pmt.RunFolder("whole").checkpoint.read_bytes()


def test_momentum_and_adam_are_what_is_published():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(3, 4, 5))
    momentum, adam = example("momentum")["Momentum"](), example("adam")["Adam"]()
    for gradient in gradients:
        update = momentum("B1", gradient, 1000.0)
        step = adam("B1", gradient, 1000.0)
    first, second, third = gradients
    total = 0.81 * first + 0.9 * second + third
    np.testing.assert_allclose(update, -1000 * total / np.sqrt(np.mean(total**2)), atol=1.0)
    mean = (0.081 * first + 0.09 * second + 0.1 * third) / (1 - 0.9**3)
    squares = 1e-3 * (0.999**2 * first**2 + 0.999 * second**2 + third**2) / (1 - 0.999**3)
    np.testing.assert_allclose(step, -1000 * mean / np.sqrt(squares), atol=1.0)
    for optimizer in (momentum, adam):
        again = type(optimizer)()
        again.load_state({name: np.array(value) for name, value in optimizer.state().items()})
        assert np.array_equal(again("B1", first, 3.0), optimizer("B1", first, 3.0))


DEFINITIONS = {
    "hinge": lambda z, y: max(0.0, 1.0 + np.delete(z, y).max() - z[y]),
    "ranking": lambda z, y: np.log1p(np.exp(np.delete(z, y) - z[y])).mean(),
    "huber": lambda z, y: np.mean(
        [d * d / 2 if d <= 1 else d - 0.5 for d in np.abs(z - np.eye(len(z))[y])]
    ),
    "smoothed": lambda z, y: (
        -((0.9 * np.eye(len(z))[y] + 0.1 / len(z)) * np.log(np.exp(z) / np.exp(z).sum())).sum()
    ),
    "zero_one": lambda z, y: float(z.argmax() != y),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_loss_is_what_its_name_says_and_trains(name):
    loss = example("losses")[name]
    rng = np.random.default_rng(1)
    logits = rng.normal(0.0, 3.0, (4, 6, 10)).astype(np.float32)
    labels = rng.integers(0, 10, 6)
    expected = [
        [DEFINITIONS[name](z, y) for z, y in zip(one, labels, strict=True)]
        for one in logits.astype(float)
    ]
    np.testing.assert_allclose(loss(logits, labels), expected, rtol=1e-5, atol=1e-5)
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "impulse_noise", 5).take(200)
    model = pmt.load("fashion_mnist_dscnn")
    before = loss(model.logits(data.images)[None], data.labels).mean()
    options = {"layers": "B1,head", "preparation": "none", "queries": 16, "mu_node": 8}
    trainer = pmt.ZOTrainer(loss=loss, epochs=2, head_rate=10.0, keep_best=False, **options)
    trainer.fit(model, data, progress=False)
    assert loss(model.logits(data.images)[None], data.labels).mean() < before


def test_another_engine_lowers_the_loss(capsys):
    found = importlib.util.find_spec("tflite_micro") is not None
    need(found, 'tflite_micro is missing: pip install "poor-mans-training[tflm]"')
    example("second_engine", "__main__")
    before, after = map(float, NUMBERS.search(capsys.readouterr().out).groups())
    assert after < before


def test_another_engine_is_the_network():
    pytest.importorskip("tflite_micro")
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("test").take(50)
    images = model.prepare(data.images)
    losses = example("second_engine")["micro_losses"](model, images, data.labels)
    own = pmt.Engine(model).losses(images, data.labels)
    assert np.corrcoef(losses, own)[0, 1] > 0.99
