import json
import sys

import numpy as np
import pytest
from cli_files import write_model
from install_hints import install_hint
from lab_files import check_golden
from networks import every_op, residual_network, smooth_network

import pmt
from pmt import _core
from pmt_lab.benchmark import forward, timing
from pmt_lab.benchmark.against import outputs_agree
from pmt_lab.benchmark.forward import random_images, speeds, time_steps
from pmt_lab.benchmark.rivals import RIVALS, open_rivals
from pmt_lab.benchmark.timing import Machine
from pmt_lab.cli import bench, main

QUICK = ["--images", "1,3", "--threads", "1", "--repeat", "1", "--batch", "2", "--queries", "2"]
OPS = [
    {"name": name, "kind": kind, "group": group, "window": window, "shape": shape}
    | speeds(macs, dict(zip((1, 100), times, strict=True)))
    for name, kind, group, window, shape, macs, times in (
        ("stem", "conv2d", "conv2d 3x3 first", "3x3/2", "8x8x3 > 4x4x8", 3456, (1, 0.5)),
        ("wide", "conv2d", "pointwise", "1x1/1", "4x4x8 > 4x4x96", 12288, (0.25, 0.2)),
        ("sum", "add", "add", "", "4x4x96 > 4x4x96", 0, (0.125, 0.125)),
        ("thin", "conv2d", "pointwise", "1x1/1", "4x4x96 > 4x4x8", 12288, (0.25, 0.2)),
    )
]
MACHINE = {
    "processor": "Imaginary 9000",
    "kernels": "portable",
    "threads": 2,
    "peak_instruction": "vpmaddwd ymm",
    "peak_gmacs": {1: 90.0, 2: 179.96},
    "one_thread_gmacs": 90.0,
    "pmt": "0.1.0",
}


def records(names, *rows):
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


STEP = "layers batch queries rule threads seconds forwards macs gmacs overhead"
FIGURES = {
    "model": "model.pmt",
    "macs": 28032,
    "machine": MACHINE,
    "forward": records(
        "images threads microseconds gmacs share",
        (1, 1, 1234.56, 18.3, 0.203),
        (100, 2, 610.04, 37.0, 0.2056),
    ),
    "layers": OPS,
    "steps": records(
        STEP,
        ("B2", 20, 10, "weight", 1, 2.5, 4000, 90_000_000_000, 36.0, 1.125),
        ("B2", 20, 10, "weight", 2, 1.25, 4000, 90_000_000_000, 72.0, 1.25),
    ),
    "engines": records(
        "engine images threads microseconds gmacs ratio",
        ("pmt", 100, 1, 500.0, 45.2, 1.0),
        ("Other 1.0, int8", 100, 1, 1500.0, 15.1, 3.0),
    ),
    "agreement": records(
        "engine images top1 equal largest",
        ("Other 1.0, int8", 100, 0.98, 0.7512, 2),
        ("Other 1.0, float32", 100, 1.0, None, None),
        ("Other 2.0, int8", 100, 1.0, 1.0, 0),
    ),
}

pytestmark = pytest.mark.usefixtures("wide_terminal")


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path)


def test_tables():
    texts = [text(FIGURES) for text in bench._TEXTS.values()]
    check_golden("bench.txt", "\n".join(texts) + "\n")


def test_the_command_prints_and_writes_every_figure(model, tmp_path, capsys):
    path = tmp_path / "figures.json"
    assert main(["bench", str(model), *QUICK, "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{model}: 48,672 MACs per image\npmt {pmt.__version__}, kernels ")
    figures = json.loads(path.read_text())
    assert sorted(figures) == [
        "agreement", "engines", "forward", "layers", "machine", "macs", "model", "repeat", "steps",
    ]  # fmt: skip
    assert [(f["images"], f["threads"]) for f in figures["forward"]] == [(1, 1), (3, 1)]
    for time in figures["forward"]:
        assert time["gmacs"] == pytest.approx(48.672 / time["microseconds"])
        assert time["share"] == pytest.approx(time["gmacs"] / figures["machine"]["peak_gmacs"]["1"])
    assert [op["name"] for op in figures["layers"]] == [
        "stem", "expand", "depth", "project", "sum", "down", "pooled", "head",
    ]  # fmt: skip
    assert figures["layers"][2]["macs"] == 9216
    assert figures["layers"][2]["group"] == "depthwise 3x3"
    assert sorted(figures["layers"][2]["microseconds"]) == ["1", "3"]
    assert figures["layers"][2]["gmacs"]["3"] == pytest.approx(
        9.216 / figures["layers"][2]["microseconds"]["3"]
    )
    assert [step["rule"] for step in figures["steps"]] == ["weight", "node"]
    assert figures["steps"][0]["forwards"] == 2 * 2 * 6
    assert figures["engines"] == figures["agreement"] == []


def test_the_bundled_model_is_the_default(tmp_path, capsys):
    quick = ["--images", "1", "--threads", "1", "--repeat", "1", "--steps", "none", "--json", "-"]
    assert main(["bench", *quick]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["model"] == "fashion_mnist_dscnn"
    assert figures["steps"] == []


def test_a_step_is_compared_with_forwards_of_its_own_size():
    model = residual_network()
    options = pmt.preset("default", layers="B2", batch=3, queries=4)
    before = model.image()
    (step,) = time_steps(model, MACHINE_OF_ONE, options, rules=("node",), repeat=3)
    cost = pmt.ZOTrainer(options, rule="node").cost(model)
    assert (step["forwards"], step["macs"]) == (cost.forwards, cost.macs)
    assert step["gmacs"] == pytest.approx(cost.macs / step["seconds"] / 1e9)
    assert step["overhead"] > 0
    assert model.image() == before


MACHINE_OF_ONE = Machine("", "", 1, "", {1: 1.0}, 1.0, "", "")


def test_the_profile_is_of_the_images_that_inference_takes_at_once():
    model = residual_network()
    profiler = _core.Profiler(model.core, forward.random_images(model, 5))
    assert profiler.images == 5
    seconds = profiler.time_ops()
    assert len(seconds) == model.core.op_count
    assert all(0 < second < 1 for second in seconds)
    assert 0 < profiler.time_op(3) < 1
    with pytest.raises(ValueError, match=r"op must be 0\.\.7; got 8"):
        profiler.time_op(8)
    large = pmt.load("fashion_mnist_dscnn")
    assert _core.Profiler(large.core, forward.random_images(large, 100)).images < 100


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((0, 8, 8, 3), np.int8), "images must be one or more; got none"),
        (np.zeros((1, 8, 8, 4), np.int8), "images must have shape"),
    ],
)
def test_the_profiler_refuses_wrong_images(images, message):
    with pytest.raises(ValueError, match=message):
        _core.Profiler(residual_network().core, images)


def test_the_peak_is_of_a_known_instruction():
    instruction, gmacs = _core.peak(1)
    assert instruction.split()[0] in {"vpdpbusd", "vpmaddwd", "pmaddwd", "sdot", "smlal", "plain"}
    assert gmacs > 0.1
    assert _core.kernels()
    assert _core.threads(3) in (1, 3)
    assert _core.threads() >= 1


def test_medians_are_taken_in_turns(monkeypatch):
    clock = [0.0]
    order = []

    def takes(name, *durations):
        left = list(durations)

        def call():
            order.append(name)
            clock[0] += left.pop(0)

        return call

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    # Each is called twice before it is measured: to warm up, and to see how long it takes.
    functions = {"a": takes("a", 9, 1, 1, 5, 2), "b": takes("b", 9, 1, 3, 3, 30)}
    assert timing.take_turns(functions, repeat=3) == {"a": 2, "b": 3}
    assert order == ["a", "a", "b", "b"] + ["a", "b"] * 3


def test_short_functions_are_called_many_times(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    calls = []

    def call():
        calls.append(0)
        clock[0] += 1 / 1024

    assert timing.take_turns({"": call}, repeat=2) == {"": 1 / 1024}
    # 20 ms are 20 calls, after 6 to warm up; and 2 before, to see how long one takes.
    assert len(calls) == 2 + 2 * (6 + 20)


def test_groups_have_one_inner_loop():
    assert forward.group_of("conv2d", (1, 1), 3) == "pointwise"
    assert forward.group_of("conv2d", (3, 3), 3) == "conv2d 3x3 first"
    assert forward.group_of("conv2d", (3, 3), 16) == "conv2d 3x3"
    assert forward.group_of("depthwise_conv2d", (7, 7), 48) == "depthwise 7x7"
    assert forward.group_of("mean", (1, 1), 48) == "mean"
    whole = forward.totals(OPS)[-1]
    assert (whole["name"], whole["macs"]) == ("all ops", 28032)
    assert whole["microseconds"] == {1: 1.625, 100: 1.025}


BAD_INPUT = {
    "engine": (
        "--against tvm",
        "argument --against: 'tvm' is unknown; choose one of onnxruntime, litert, torch; "
        "see `pmt-lab bench --help`",
    ),
    "images": (
        "--images 1,none",
        "argument --images: none must be a whole number, 1 or more; see `pmt-lab bench --help`",
    ),
    "step": (
        "--steps model",
        "argument --steps: 'model' is unknown; did you mean 'node'?; see `pmt-lab bench --help`",
    ),
    "layer": (
        "--layers nose",
        "layers='nose': 'nose' is neither a block (B1, B2, B3, head, all) nor a layer; "
        "`pmt info` lists the layers",
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(name, model, capsys):
    options, message = BAD_INPUT[name]
    assert main(["bench", str(model), *options.split()]) == 2
    assert capsys.readouterr().err == f"pmt-lab: error: {message}\n"


@pytest.mark.parametrize(
    ("option", "package", "message"),
    [
        (
            "--against=onnxruntime",
            "onnxruntime",
            f"--against needs the package onnxruntime: {install_hint('bench')}",
        ),
        (
            "--against=onnxruntime",
            "onnx",
            f"--against needs the package onnx: {install_hint('bench')}",
        ),
        (
            "--against=litert",
            "ai_edge_litert",
            f"--against needs the package ai-edge-litert: {install_hint('bench')}",
        ),
        ("--against=torch", "torch", f"--against needs the package torch: {install_hint('torch')}"),
    ],
)
def test_a_missing_package_is_named(option, package, message, model, monkeypatch, capsys):
    if package == "onnx":
        pytest.importorskip("onnxruntime")
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["bench", str(model), option]) == 2
    assert capsys.readouterr().err == f"pmt-lab: error: {message}\n"


PACKAGES = {
    "onnxruntime": ("onnxruntime", "onnx"),
    "litert": ("ai_edge_litert", "tflite"),
    "torch": ("torch",),
}


def needs(*engines: str) -> None:
    for engine in engines:
        for package in PACKAGES[engine]:
            pytest.importorskip(package)


NETWORKS = {
    "residual": residual_network,
    "smooth": smooth_network,
    "every op": every_op,
    "bundled": lambda: pmt.load("fashion_mnist_dscnn"),
}


@pytest.mark.parametrize("engine", RIVALS)
@pytest.mark.parametrize("name", NETWORKS)
def test_engines_compute_the_same_network(name, engine):
    needs(engine)
    model = NETWORKS[name]()
    rivals = open_rivals(engine, model, "model.pmt")
    found = outputs_agree(model, rivals)[-1]  # ONNX Runtime's last mode is the exact one
    if engine == "torch":
        assert found["top1"] >= 0.9
    else:
        assert found["top1"] >= 0.97
        assert found["equal"] >= 0.9
        assert found["largest"] <= 2


@pytest.mark.parametrize("engine", RIVALS)
def test_a_batch_gives_what_single_images_give(engine):
    needs(engine)
    model = residual_network()
    images = random_images(model, 5)
    for rival in open_rivals(engine, model, "model.pmt"):
        assert rival.takes_batches
        one, many = (rival.runner(images, batch, 1)() for batch in (1, 5))
        np.testing.assert_allclose(one, many, rtol=1e-4, atol=1e-5)


def test_float_logits_are_close_to_ours():
    needs("torch")
    model = residual_network()
    images = random_images(model, 20)
    (rival,) = open_rivals("torch", model, "model.pmt")
    ours = model.core.logits(images)
    assert np.abs(rival.runner(images, 20, 1)() - ours).max() < 0.05 * np.abs(ours).max()


def test_a_tflite_file_is_run_as_it_is(resnet8_path):
    needs("litert")
    model = pmt.load(resnet8_path)
    (rival,) = open_rivals("litert", model, resnet8_path)
    assert rival.content == resnet8_path.read_bytes()
    (found,) = outputs_agree(model, [rival])
    assert found["top1"] >= 0.97
    assert found["equal"] is None  # the file ends with a softmax


def test_the_command_compares(tmp_path, capsys):
    needs("onnxruntime", "litert")
    quick = ["--images", "2", "--threads", "1", "--repeat", "1", "--steps", "none", "--json", "-"]
    assert main(["bench", *quick, "--against", "onnxruntime,litert"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    titles = [time["engine"] for time in figures["engines"]]
    assert titles[0] == "pmt"
    assert [title.split()[0] for title in titles[1:]] == ["ONNX", "ONNX", "LiteRT"]
    own = figures["engines"][0]["microseconds"]
    for time in figures["engines"]:
        assert time["ratio"] == pytest.approx(time["microseconds"] / own)
    assert "same best class for 100 % of 100 random images" in printed.err
