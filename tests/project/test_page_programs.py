"""The Python programs of the pages run, each page's in order and in one namespace."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pmt
from pages import DOCS, code_blocks, own_pages, run_block
from pmt.cli import main
from pmt.quantization import dequantize

Names = dict[str, Any]

# Pages whose programs have a test of their own, which compares what they print.
ELSEWHERE = {
    "guides/datasets.md": "project/test_guides.py",
    "guides/embeddings.md": "project/test_guides.py",
    "guides/exporters.md": "cli/test_documents.py",
    "guides/extending.md": "project/test_extending.py",
    "guides/learner.md": "cli/test_documents.py",
    "guides/sensors.md": "project/test_guides.py",
    "reference/integers.md": "core/test_training_arithmetic.py",
    "tutorials/first_model.md": "cli/test_documents.py",
    "tutorials/own_network.md": "project/test_guides.py",
}
# Programs that train on all images that come with pmt: the test takes fewer of them.
LONG = ("guides/selection.md", "reference/python.md")


TRAIN, TEST = (pmt.datasets.bundled(part)[:100] for part in ("train", "test"))


def images_of(part: str) -> pmt.datasets.Dataset:
    return TRAIN if part == "train" else TEST


def model() -> pmt.Model:
    return pmt.load("fashion_mnist_dscnn")


def trained() -> Names:
    """The names that a page has for a model, and data to train it on."""
    data = images_of("train")
    return {"pmt": pmt, "model": model(), "data": data, "test": images_of("test")}


def alignment() -> Names:
    assert main(["statistics", "fashion_mnist_dscnn", "--data", "bundled", "--out", "s.pmt"]) == 0
    return {"model": pmt.load("s.pmt"), "images": images_of("train").images}


def corruptions() -> Names:
    assert main(["corrupt", "bundled", "--name", "fog", "--limit", "20", "--out", "DIR"]) == 0
    return {"pmt": pmt}


def onnx() -> Names:
    pytest.importorskip("onnx")
    pytest.importorskip("torch")
    return {}


def quantization() -> Names:
    return {"float_graph": dequantize(model().to_graph()), "images": images_of("train").images}


def python() -> Names:
    pytest.importorskip("matplotlib")
    data, test = images_of("train"), images_of("test")
    confusion = model().confusion(test)
    one_hot = np.eye(10, dtype=np.float32)[data.labels]
    targets = pmt.datasets.Dataset.with_targets(data.images, one_hot)
    return {"np": np, "with_targets": targets, "before": confusion, "after": confusion}


def backprop() -> Names:
    pytest.importorskip("torch")
    return {**trained(), "held_out": images_of("test")}


PAGES: dict[str, Callable[[], Names]] = {
    "concepts/protocol.md": dict,
    "guides/alignment.md": alignment,
    "guides/input_stage.md": dict,
    "guides/corruptions.md": corruptions,
    "guides/importers_onnx.md": onnx,
    "guides/quantization.md": quantization,
    "guides/selection.md": dict,
    "reference/backprop.md": backprop,
    "reference/methods.md": trained,
    "reference/python.md": python,
    "reference/sparse_backprop.md": dict,
}


def programs(page: str) -> list[str]:
    return [text for kind, text in code_blocks(page) if kind == "python"]


def test_every_program_of_a_page_is_run():
    pages = (str(path.relative_to(DOCS)) for path in own_pages())
    assert {page for page in pages if programs(page)} == {*PAGES, *ELSEWHERE}
    tests = DOCS.parent / "tests"
    assert [test for test in ELSEWHERE.values() if not (tests / test).is_file()] == []


# torch calls the exporter that needs no further package a legacy.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page, tmp_path, shared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcunet-5fps.pkl").symlink_to(shared / "models" / "mcunet-5fps.pkl")
    names = PAGES[page]()
    if page in LONG:
        monkeypatch.setattr(pmt.datasets, "bundled", images_of)
    for text in programs(page):
        run_block("python", text, names)


def test_the_python_page_says_what_expressions_give():
    page = (DOCS / "reference" / "python.md").read_text()
    names = {"np": np, "array": np.array, "model": model()}
    names["images"] = pmt.datasets.bundled("test").images[:3]
    shown = re.findall(r"^(model\.(?:input_shape|predict\(.*\))) +# (.*?): ", page, re.MULTILINE)
    assert [expression for expression, _ in shown] == [
        "model.input_shape",
        "model.predict(images)",
        "model.predict(images, top=2)",
    ]
    for expression, value in shown:
        assert np.array_equal(eval(expression, names), eval(value, names)), expression
