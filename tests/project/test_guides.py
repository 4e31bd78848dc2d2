"""Guides as a reader runs them, compared with what they say: programs of a page are one session."""

import re
from typing import Any

import pytest

from pages import DOCS, code_blocks, run_block

DATASETS = [text for kind, text in code_blocks("guides/datasets.md") if kind == "python"]


@pytest.fixture
def session(tmp_path, monkeypatch, capsys):
    """Run a page: its kinds of blocks, what each printed, and the names that they left."""
    monkeypatch.chdir(tmp_path)

    def run(page: str) -> tuple[list[str], list[str], dict[str, Any]]:
        names: dict[str, Any] = {}
        outputs = []
        blocks = code_blocks(page)
        for kind, text in blocks:
            run_block(kind, text, names)
            outputs.append(capsys.readouterr().out)
        return [kind for kind, _ in blocks], outputs, names

    return run


def test_the_own_network_is_quantized_adapts_and_goes_back(session):
    for package in ("torch", "onnx", "tflite", "ai_edge_litert"):
        pytest.importorskip(package)
    kinds, outputs, _ = session("tutorials/own_network.md")
    assert kinds == ["python", "python", "python", "", "", "", "python"]
    _, quantized, _, trained, judged, converted, compared = outputs
    (floating, integer) = re.search(r"^accuracy float (\S+), int8 (\S+)$", quantized).groups()
    assert abs(float(floating) - float(integer)) < 0.01
    before, after = re.search(r"^accuracy (\S+) -> (\S+),", trained, re.MULTILINE).groups()
    assert float(after) > float(before) + 0.15
    assert re.search(r"^ *aligned ", trained, re.MULTILINE)
    assert re.search(rf"^b: adapted +{after} ", judged, re.MULTILINE)
    assert "cnn.tflite: full-integer TFLite" in converted
    assert float(compared.split()[0]) >= 99.0


def test_windows_of_a_motion_sensor_drift_and_the_head_brings_nearly_all_of_it(session, tmp_path):
    kinds, outputs, _ = session("guides/sensors.md")
    assert kinds == ["python", "python", "python", ""]
    printed = "".join(outputs)
    begun, drifted, head, whole = map(float, re.findall(r"^[a-z ,]+: (0\.\d{3})$", printed, re.M))
    assert begun > 0.9
    assert drifted < begun - 0.3
    assert head > drifted + 0.45
    assert head > 0.9
    assert whole > head - 0.005
    before, after = re.search(r"^accuracy (\S+) -> (\S+),", printed, re.MULTILINE).groups()
    assert float(before) == pytest.approx(drifted, abs=5e-4)
    assert float(after) == pytest.approx(whole, abs=5e-4)
    assert f"600 test images of {tmp_path / 'motion'}\n" in printed


def test_embeddings_have_a_loss_of_ones_own(session):
    _, printed, names = session("guides/embeddings.md")
    assert printed[0] == "128 features 14x14x32 features\n"
    page = (DOCS / "guides" / "embeddings.md").read_text()
    assert f"It prints `{printed[1].strip()}`." in page
    shown = re.search(r"It prints `right by the nearest prototype: (\S+)`; .* is (\S+)\.$", page, 8)
    nearest = float(printed[2].rpartition(" ")[2])
    assert nearest == pytest.approx(float(shown[1]), abs=0.02)  # NumPy's sums differ by machine
    untrained = names["pmt"].load("fashion_mnist_dscnn").features()
    cosines = untrained.outputs(names["test"].images) @ names["prototypes"].T
    before = (cosines.argmax(axis=1) == names["test"].labels).mean()
    assert before == pytest.approx(float(shown[2]), abs=0.002)


def test_the_example_of_embeddings_is_30_lines_at_most_and_stands_on_the_page():
    text = (DOCS.parent / "examples" / "own_embedding.py").read_text()
    assert len(text.splitlines()) <= 30
    assert ("python", text) in code_blocks("guides/embeddings.md")


def test_arrays_of_ones_own():
    names: dict[str, Any] = {}
    run_block("python", DATASETS[0], names)
    assert repr(names["data"]) == "Dataset('mine', 200 images 28x28x1, 10 classes)"
    assert len(names["both"]) == 250
    assert names["label"] == 0


def test_an_adapter_takes_a_loader_to_a_trained_model(capsys):
    pytest.importorskip("torch")
    program = DATASETS[1]
    assert len(program.splitlines()) <= 30
    run_block("python", program, {})
    printed = capsys.readouterr().out
    assert printed.endswith("Dataset('stream', 120 images 28x28x1, 10 classes)\n")
    accuracies = re.findall(r"^ *(?:start|1) .* (0\.\d{4}) ", printed, re.MULTILINE)
    assert float(accuracies[1]) > float(accuracies[0]) + 0.02


def test_the_page_of_data_sets_names_every_adapter():
    page = (DOCS / "guides" / "datasets.md").read_text()
    rows = re.findall(r"^\| `(from_\w+)` \|", page, re.MULTILINE)
    assert rows == ["from_torch", "from_hugging_face", "from_stream"]


def test_a_stream_becomes_a_data_set(capsys):
    (program,) = (text for text in DATASETS if "from_stream(camera, limit=400" in text)
    run_block("python", program, {})
    expected = "Dataset('stream', 400 images 28x28x1, 10 classes) 400\n"
    assert capsys.readouterr().out == expected
