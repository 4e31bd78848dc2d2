"""Trained weights in the .tflite file that the model was imported from."""

from dataclasses import replace
from pathlib import Path

import litert_engine
import numpy as np
import pytest
from cli_files import same_weights
from networks import convolution_before_mean, residual_network
from tflite_builder import TfliteBuilder

import pmt
from pmt.formats.tflite import export_in_place as tflite_in_place
from pmt.formats.tflite.exporter import tflite_model
from pmt.net.graph import Graph

tflite = pytest.importorskip("tflite")


def moved(model: pmt.Model, *, layers: str = "all", bias: bool = True) -> pmt.Model:
    """A copy with every weight, and every bias, of some layers another one."""
    model = model.copy()
    for layer in model.select_layers(layers):
        weights, biases = model.core.weights(layer), model.core.bias(layer)
        model.core.set_parameters(layer, np.clip(weights + 1, -127, 127), biases - 3 * bias)
    return model


def ranges_that_differ(a: bytes, b: bytes) -> list[tuple[int, int]]:
    places = np.flatnonzero(np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8))
    ends = np.flatnonzero(np.diff(places) > 64)
    return [(int(part[0]), int(part[-1])) for part in np.split(places, ends + 1)]


def changed_file(path: Path, folder: Path, change) -> Path:
    """A copy of a file, changed through the views of its flatbuffer."""
    data = bytearray(path.read_bytes())
    change(tflite.Model.GetRootAs(data, 0))
    (folder / "changed.tflite").write_bytes(data)
    return folder / "changed.tflite"


def test_an_unchanged_model_gives_the_same_bytes(resnet8_path, tmp_path):
    pmt.load(resnet8_path).save(tmp_path / "same.tflite", into=resnet8_path)
    assert (tmp_path / "same.tflite").read_bytes() == resnet8_path.read_bytes()


def test_only_the_bytes_of_trained_layers_change(resnet8_path, tmp_path):
    trained = moved(pmt.load(resnet8_path), layers="head")
    trained.save(tmp_path / "head.tflite", into=resnet8_path)
    before, after = resnet8_path.read_bytes(), (tmp_path / "head.tflite").read_bytes()
    assert len(before) == len(after)
    assert sum(last - first + 1 for first, last in ranges_that_differ(before, after)) <= 640 + 40
    assert same_weights(pmt.load(tmp_path / "head.tflite"), trained)


def test_every_layer_is_read_back(resnet8_path, tmp_path):
    trained = moved(pmt.load(resnet8_path))
    trained.save(tmp_path / "all.tflite", into=resnet8_path)
    again = pmt.load(tmp_path / "all.tflite")
    assert same_weights(again, trained)
    for layer in trained.layers:
        biases = (again.core.bias(layer.index), trained.core.bias(layer.index))
        np.testing.assert_array_equal(*biases)
    # And the other way round: the trained file takes the first weights.
    pmt.load(resnet8_path).save(tmp_path / "back.tflite", into=tmp_path / "all.tflite")
    assert (tmp_path / "back.tflite").read_bytes() == resnet8_path.read_bytes()


def test_a_short_training_reaches_both_kinds_of_file(resnet8_path, cifar10_dir, tmp_path):
    """Top-1 on 300 images of LiteRT, on a new file and on the original with these weights."""
    pytest.importorskip("ai_edge_litert")
    data = pmt.datasets.load(cifar10_dir, split="test")
    noisy = pmt.corruptions.corrupt(data, "gaussian_noise", severity=5, seed=0)
    model = pmt.load(resnet8_path)
    trainer = pmt.ZOTrainer(
        layers="B4,head", queries=4, epochs=1, batch=50, seed=1, preparation="align"
    )
    trainer.fit(model, noisy.subset(np.arange(300, 700)), out=tmp_path / "run")
    trained = pmt.load(tmp_path / "run")
    assert not same_weights(trained, pmt.load(resnet8_path))
    trained.save(tmp_path / "new.tflite")
    trained.save(tmp_path / "own.tflite", into=resnet8_path)
    images, labels = trained.prepare(noisy.images[:300]), noisy.labels[:300]
    ours = trained.core.logits(images, int8_logits=True)
    for name in ("new", "own"):
        content = (tmp_path / f"{name}.tflite").read_bytes()
        found = litert_engine.outputs(content, images).astype(int)
        # A class is as good as the best where the int8 outputs tie.
        best = [row == row.max() for row in found]
        ties = [row == row.max() for row in ours]
        agree = [bool((a & b).any()) for a, b in zip(best, ties, strict=True)]
        assert np.mean(agree) >= 0.99, name
        right = np.mean([a[label] for a, label in zip(best, labels, strict=True)])
        assert right == pytest.approx(
            np.mean([b[label] for b, label in zip(ties, labels, strict=True)]), abs=0.01
        )


def test_another_model_is_refused(resnet8_path, tmp_path):
    out = tmp_path / "out.tflite"
    with pytest.raises(
        ValueError,
        match=r"resnet8.*not imported from this file: it has 15 operations, the model 8; give the "
        r"file it came from",
    ):
        residual_network().save(out, into=resnet8_path)
    model = pmt.load(resnet8_path)

    def refused(change, message: str) -> None:
        graph = model.to_graph()
        change(graph)
        with pytest.raises(ValueError, match=message):
            pmt.Model.from_graph(graph).save(out, into=resnet8_path)

    def rename(graph: Graph) -> None:
        graph.ops[0].name = "stem"

    def clamp(graph: Graph) -> None:
        graph.ops[0].clamp = (-128, 100)

    refused(rename, r"'conv2d' has name 'conv2d', the model 'stem'")
    refused(clamp, r"'conv2d' has clamp \(-128, 127\), the model \(-128, 100\)")
    assert not out.exists()


def test_new_weight_scales_reach_the_file(resnet8_path, tmp_path):
    graph = pmt.load(resnet8_path).to_graph()
    for op in (graph.ops[0], graph.ops[-1]):
        op.weight_scales = op.weight_scales * np.float32(1.5)
    rescaled = moved(pmt.Model.from_graph(graph), layers="head")
    rescaled.save(tmp_path / "new.tflite", into=resnet8_path)
    again = pmt.load(tmp_path / "new.tflite")
    assert same_weights(again, rescaled)
    for layer in rescaled.layers:
        assert np.array_equal(again.weight_scales(layer.index), rescaled.weight_scales(layer.index))
    assert (tmp_path / "new.tflite").stat().st_size == resnet8_path.stat().st_size


def test_scales_that_have_no_place_in_the_file_are_named(resnet8_path, tmp_path):
    graph = pmt.load(resnet8_path).to_graph()
    graph.ops[-1].weight_scales = graph.ops[-1].weight_scales * np.float32([1.5] + [1.0] * 9)
    with pytest.raises(
        ValueError,
        match=r"layer '.*' has new weight scales, and the file has one for all its channels; "
        "convert without --into",
    ):
        pmt.Model.from_graph(graph).save(tmp_path / "new.tflite", into=resnet8_path)


def test_a_solved_head_goes_back_into_the_file(resnet8_path, cifar10_dir, tmp_path):
    data = pmt.datasets.load(cifar10_dir, split="test").take(400)
    model = pmt.load(resnet8_path)
    scales = model.weight_scales("dense")
    pmt.methods.trainer("preparation_only", layers="head").fit(model, data, progress=False)
    assert len(np.unique(model.weight_scales("dense"))) == 1
    assert not np.array_equal(model.weight_scales("dense"), scales)
    model.save(tmp_path / "new.tflite", into=resnet8_path)
    images = model.prepare(data.images)
    found = pmt.load(tmp_path / "new.tflite").core.logits(images)
    assert np.array_equal(found, model.core.logits(images))


def narrowed(file) -> None:
    """Cut logits: give the output of the last layer, and so of the network, a small range."""
    graph = file.Subgraphs(0)
    logits = graph.Tensors(graph.Operators(graph.OperatorsLength() - 1).Inputs(0))
    logits.Quantization().ScaleAsNumpy()[0] /= 16


def test_a_wider_output_goes_back_into_the_file(resnet8_path, cifar10_dir, tmp_path):
    data = pmt.datasets.load(cifar10_dir, split="test").take(400)
    original = changed_file(resnet8_path, tmp_path, narrowed)
    model = pmt.load(original)
    before = model.to_graph().tensors[-1]
    pmt.methods.trainer("preparation_only", layers="head").fit(model, data, progress=False)
    after = model.to_graph().tensors[-1]
    assert after.scale > 4 * before.scale
    model.save(tmp_path / "new.tflite", into=original)
    assert pmt.load(tmp_path / "new.tflite").to_graph().tensors[-1] == after
    images = model.prepare(data.images[:40])
    found = litert_engine.outputs((tmp_path / "new.tflite").read_bytes(), images)
    assert (found.argmax(axis=1) == model.predict(data.images[:40])).mean() >= 0.95


@pytest.mark.parametrize("end", ["RESHAPE", "SOFTMAX", "QUANTIZE"])
def test_a_wider_output_passes_what_takes_any_range(tmp_path, end):
    b = TfliteBuilder()
    x, y, z = (b.activation(*shape) for shape in ((1, 4, 4, 2), (1, 1, 1, 3), (1, 3)))
    w = b.constant(np.ones((3, 4, 4, 2), np.int8), scales=[0.1], name="conv")
    b.op("CONV_2D", [x, w, -1], [y], Padding=1, StrideH=1, StrideW=1)
    b.op("RESHAPE", [y, b.constant(np.array([1, 3], np.int32))], [z])
    if end != "RESHAPE":
        b.op(end, [z], [b.activation(1, 3, scale=1 / 256, zero=-128)])
    path, new = tmp_path / "net.tflite", tmp_path / "new.tflite"
    path.write_bytes(b.bytes([x], b.ops[-1][2]))
    graph = pmt.load(path).to_graph()
    graph.tensors[-1] = replace(graph.tensors[-1], scale=2.0, zero_point=7)
    wider = pmt.Model.from_graph(graph)
    if end == "QUANTIZE":
        with pytest.raises(
            ValueError,
            match="the head's output has a new range, which fits its logits, and operators behind "
            "it have the old one; convert without --into",
        ):
            wider.save(new, into=path)
        return
    wider.save(new, into=path)
    assert pmt.load(new).to_graph().tensors == graph.tensors


def test_new_ranges_before_and_behind_a_final_mean_go_back_into_the_file(tmp_path):
    path, new = tmp_path / "net.tflite", tmp_path / "new.tflite"
    convolution_before_mean(0.125).save(path)
    model = pmt.load(path)
    for same in (model, convolution_before_mean(0.125)):  # whose ops have other names
        same.save(new, into=path)
        assert new.read_bytes() == path.read_bytes()
    before = model.to_graph().tensors
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(60), "fog", 5)
    pmt.methods.trainer("preparation_only", layers="head").fit(model, data, progress=False)
    model.save(new, into=path)
    after = pmt.load(new).to_graph().tensors
    assert after == model.to_graph().tensors
    assert [a.scale > b.scale for a, b in zip(after, before, strict=True)][-3:] == [
        False,
        True,
        True,
    ]


def test_other_quantization_is_named(resnet8_path, tmp_path):
    def change(file) -> None:
        graph = file.Subgraphs(0)
        branch = graph.Tensors(graph.Operators(2).Outputs(0))  # which an ADD alone reads
        branch.Quantization().ScaleAsNumpy()[0] *= 2

    other = changed_file(resnet8_path, tmp_path, change)
    message = r"activation 3 has scale and zero point \(0\.208\d+, 4\), the model's \(0\.104\d+, 4"
    with pytest.raises(ValueError, match=message):
        pmt.load(resnet8_path).save(tmp_path / "out.tflite", into=other)


def shared_file(folder: Path) -> Path:
    """Two layers of equal weights, which a converter may store once."""
    graph = residual_network(width=8).to_graph()
    first, second = graph.ops[1], graph.ops[3]
    second.weights = first.weights.reshape(second.weights.shape).copy()
    path = folder / "shared.tflite"
    path.write_bytes(tflite_model(graph))

    def share(file) -> None:
        subgraph = file.Subgraphs(0)
        one, other = (subgraph.Tensors(subgraph.Operators(i).Inputs(1)) for i in (1, 3))
        place = other._tab.Pos + other._tab.Offset(8)
        other._tab.Bytes[place : place + 4] = int(one.Buffer()).to_bytes(4, "little")

    return changed_file(path, folder, share)


def same_parameters(one: pmt.Model, other: pmt.Model) -> bool:
    biases = [(one.core.bias(at.index), other.core.bias(at.index)) for at in one.layers]
    return same_weights(one, other) and all(np.array_equal(a, b) for a, b in biases)


def test_layers_that_share_weights_must_stay_alike(tmp_path):
    path = shared_file(tmp_path)
    model = pmt.load(path)
    model.save(tmp_path / "same.tflite", into=path)
    assert (tmp_path / "same.tflite").read_bytes() == path.read_bytes()
    alike = moved(model, layers="expand,project", bias=False)
    alike.save(tmp_path / "both.tflite", into=path)
    assert same_parameters(pmt.load(tmp_path / "both.tflite"), alike)
    assert (tmp_path / "both.tflite").stat().st_size == path.stat().st_size
    with pytest.raises(
        ValueError,
        match=r"layer 'expand' was trained, and shares a constant of the file with others that "
        "differ from it now; convert without --into",
    ):
        moved(model, layers="expand", bias=False).save(tmp_path / "one.tflite", into=path)
    assert not (tmp_path / "one.tflite").exists()


def test_trained_biases_need_a_place(tmp_path):
    b = TfliteBuilder()
    x, y = b.activation(1, 4, 4, 2), b.activation(1, 4, 4, 2)
    w = b.constant(np.ones((2, 1, 1, 2), np.int8), scales=[0.1, 0.2], name="net/conv/Conv2D")
    b.op("CONV_2D", [x, w, -1], [y], Padding=1, StrideH=1, StrideW=1)
    path = tmp_path / "net.tflite"
    path.write_bytes(b.bytes([x], [y]))
    model = pmt.load(path)
    moved(model, bias=False).save(tmp_path / "weights.tflite", into=path)
    assert same_weights(pmt.load(tmp_path / "weights.tflite"), moved(model))
    with pytest.raises(
        ValueError, match=r"layer 'conv' has trained biases, and none in the file; conv"
    ):
        moved(model).save(tmp_path / "bias.tflite", into=path)


def test_layers_that_the_import_made_must_be_untrained(tmp_path, monkeypatch):
    """As an importer does that unpacks groups, or makes a layer of another operator."""
    path = tmp_path / "net.tflite"
    path.write_bytes(tflite_model(residual_network().to_graph()))
    graph = pmt.load(path).to_graph()
    graph.ops[3].weights = graph.ops[3].weights[::-1].copy()
    imported = replace(tflite_in_place.lower(path), graph=graph)
    monkeypatch.setattr(tflite_in_place, "lower", lambda path: imported)
    model = pmt.Model.from_graph(graph)
    model.save(tmp_path / "same.tflite", into=path)
    assert (tmp_path / "same.tflite").read_bytes() == path.read_bytes()
    others = moved(model, layers="stem,expand,depth,down,head")
    others.save(tmp_path / "others.tflite", into=path)
    with pytest.raises(
        ValueError, match=r"layer 'project' was trained, and the file does not store it as it is h"
    ):
        moved(model).save(tmp_path / "all.tflite", into=path)


@pytest.mark.parametrize(
    ("out", "into", "message"),
    [
        ("net.pmt", "net.tflite", r"into='net\.tflite' writes a \.tflite file; change the suffix"),
        ("net.tflite", "net.pmt", r"into='net\.pmt': must be the \.tflite file"),
    ],
)
def test_both_must_be_tflite(out, into, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        residual_network().save(tmp_path / out, into=into)


def test_a_missing_original_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.tflite'?: there is no such file"):
        residual_network().save(tmp_path / "x.tflite", into=tmp_path / "none.tflite")
