"""Arguments of a wrong kind where a sequence, a data set or a graph is needed: no raw error."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt import corruptions, datasets, methods, plots, protocol, sheets
from pmt.datasets import Dataset
from pmt.firmware.board.profile import profile_board, profile_methods
from pmt.firmware.monitor import TrainingLog, follow
from pmt.firmware.stream import emulated_board, read_model
from pmt.net.graph import with_new_head
from pmt.train import choose

MODEL = residual_network()
DATA = Dataset(pixels(MODEL, 12), labels(MODEL, 12), ("a", "b", "c", "d"), "drawn")
OTHERS = Dataset(255 - DATA.images, DATA.labels, DATA.class_names, "others")
GRAPH = MODEL.to_graph()
TRAINER = pmt.ZOTrainer(layers="head", epochs=1, queries=2, batch=8, preparation="none")
NO_AXES = np.array(3)
NO_DATA = (
    ": must be a pmt.datasets.Dataset or a tuple (x, y) of two arrays; pmt.datasets.from_torch, "
    "from_hugging_face and from_stream read other kinds"
)


def fit(**changes: Any) -> Any:
    return TRAINER.fit(MODEL.copy(), DATA, **{"progress": False, **changes})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MODEL.select_layers(np.array(1.5)),
         "layers=1.5 must be names of blocks or layers, or op indices"),
        (lambda: MODEL.select_layers(True),
         "layers=True must be names of blocks or layers, or op indices"),
        (lambda: pmt.Engine(MODEL, b"head"),
         "layers=b'head' must be names of blocks or layers, or op indices"),
        (lambda: fit(callbacks=NO_AXES),
         "callbacks=array(3) must be a list of callables; a single one is given as [callback]"),
        (lambda: fit(progress=3),
         "progress is 3: must be True, False, or a callable progress(step, record)"),
        (lambda: datasets.concatenate(NO_AXES),
         "parts is an array of int64: must be a list of data sets"),
        (lambda: datasets.from_stream(NO_AXES),
         "source is an array of int64: must be pairs (input, label), or a callable that returns "
         "an iterable of them"),
        (lambda: datasets.from_torch(NO_AXES),
         "data is an array of int64: must be a Dataset or DataLoader of torch, whose samples are "
         "pairs (input, label)"),
        (lambda: datasets.from_stream([], features=np.zeros(0)),
         "features=array([], dtype=float64) must be True or False"),
        (lambda: datasets.from_stream([], channels_first="yes"),
         "channels_first='yes' must be True, False or None"),
        (lambda: sheets.corruption_sheet(lambda name, severity: [], ["fog"], 3, captions=["a"]),
         "severities=3 must be a sequence of 1..5"),
        (lambda: sheets.corruption_sheet(lambda name, severity: [], ["fog"], ["x"], captions=[]),
         "severities='x' must be an integer"),
        (lambda: Dataset(DATA.images, DATA.labels, NO_AXES, "x"),
         "class_names=array(3) must be a sequence of names"),
        (lambda: corruptions.corrupt(DATA, "frost", 1, overlays=3),
         "overlays is 3: must be text or a path"),
        (lambda: corruptions.ArrayWriter(DATA, "out").write("fog", 3),
         "progress is 3: must be a callable, or None"),
        (lambda: protocol.CorruptedCopies(DATA, None, "all"),
         "writer is None: must be a pmt.corruptions.ArrayWriter"),
        (lambda: protocol.DataSource.from_config(None),
         "source is None: must be a dict, as to_config() returns"),
        (lambda: protocol.DataSource("bundled").pool("train", None),
         "model is None: must be a pmt.Model; pmt.load(path) reads one"),
        (lambda: protocol.DataSource("bundled").load_splits(None),
         "model is None: must be a pmt.Model; pmt.load(path) reads one"),
        (lambda: protocol.evaluate_model(MODEL, protocol.DataSource("d"), against=MODEL, names=3),
         "names=3 must be a sequence of names"),
        (lambda: pmt.Comparison.of_scores(("a", "b"), None, MODEL.score_images(DATA)),
         "a is None: must be what model.score_images(data) returns"),
        (lambda: pmt.Confusion.of_predictions(DATA, None, MODEL),
         "predicted is object of shape (): must be an integer for each image, as "
         "model.predict(images) returns"),
        (lambda: MODEL.confusion(DATA).most_frequent_errors(1.5), "count=1.5 must be an integer"),
        (lambda: methods.register("signs", "s", trainer=3),
         "trainer is 3: must be a subclass of pmt's Trainer"),
        (lambda: TRAINER.held_out_images(None), f"data is None{NO_DATA}"),
        (lambda: TRAINER.fitted_to(None), f"data is None{NO_DATA}"),
        (lambda: TRAINER.schedule_on(MODEL, None), f"data is None{NO_DATA}"),
        (lambda: TRAINER.schedule(MODEL, None), "samples=None must be an integer"),
        (lambda: pmt.RunFolder.is_prepared(None),
         "checkpoint is None: must be a pmt.Model; pmt.load(path) reads one"),
        (lambda: choose.select(MODEL, DATA, DATA, progress=3), "progress=3 must be True or False"),
        (lambda: choose.select_block(MODEL, protocol.DataSource("d"), split=3),
         "split is 3: must be a pmt.protocol.SplitChoice, or None"),
        (lambda: plots.plot_memory([], limits=3), "limits=3 must be a sequence of sizes in KB"),
        (lambda: profile_methods(None, "mezo"),
         "model is None: must be a pmt.Model; pmt.load(path) reads one"),
        (lambda: profile_methods(MODEL, "mezo", against=None),
         "against=None must be a sequence of names"),
        (lambda: profile_board(MODEL, None, "stm32f746g-disco"),
         "profiles is None: must be a list of what "
         "pmt.profiling.profile.profile_method(model, method) returns"),
        (lambda: pmt.callbacks.EarlyStopping(monitor=None),
         "monitor is None: must be the name of a figure of an epoch, as held_out_loss"),
        (lambda: read_model(None), "folder is None: must be text or a path"),
        (lambda: next(follow(None, TrainingLog())),
         "lines is None: must be lines of text, as of an open file"),
        (lambda: next(follow(["x"], None)),
         "log is None: must be a pmt.firmware.monitor.TrainingLog"),
        (lambda: with_new_head(None, 3),
         "graph is None: must be a pmt.net.graph.Graph; model.to_graph() returns one"),
    ],
)  # fmt: skip
def test_a_kind_that_is_wrong(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sheets.corruption_sheet(lambda name, severity: [], ["fog"], [6], captions=[]),
         "severities=6 must be 1..5"),
        (lambda: protocol.balanced_order(3, 0),
         "y has shape (): must be (N,), the number of each image's class"),
        (lambda: corruptions.corrupt(DATA, "fog", 1, constants=NO_AXES),
         "constants=array(3) is unknown; choose one of cifar10, imagenet"),
        (lambda: pmt.Filter(NO_AXES, 3), "name=array(3) is unknown"),
        (lambda: MODEL.weights(np.zeros(0)), "layer=array([], dtype=float64) is not a layer with"),
        (lambda: pmt.Confusion.of_predictions(DATA, np.full(12, 4), MODEL),
         "predicted holds 4: must be 0 to 3"),
        (lambda: protocol.evaluate_model(
            MODEL, protocol.DataSource("d"), against=MODEL, names=("a",)),
         "names=('a',) must be two, of model and against"),
        (lambda: pmt.RunFolder.is_prepared(MODEL),
         "checkpoint is a model without a step: must be what load_checkpoint() returns first"),
    ],
)  # fmt: skip
def test_a_value_of_a_wrong_kind(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()


@pytest.mark.parametrize(
    ("part", "field", "value", "message"),
    [
        ("graph", "tensors", None, "tensors is None: must be a list of Tensor"),
        ("graph", "ops", "x", "ops is 'x': must be a list of Op"),
        ("graph", "output", None, "output is None: must be an integer"),
        ("graph", "input_mean", 0.0, "input_mean is 0.0: must be a sequence of numbers"),
        ("graph", "blocks", None, "blocks is None: must be a dict"),
        ("graph", "blocks", {"B1": 1}, "blocks['B1'] is 1: must be a sequence of integers"),
        ("op", "inputs", None, "ops[0].inputs is None: must be a sequence of integers"),
        ("op", "name", None, "ops[0].name is None: must be text"),
        ("op", "kernel", (3,), "ops[0].kernel is tuple: must be two integers"),
        ("op", "padding", 1, "ops[0].padding is 1: must be four integers"),
        ("op", "weights", [[1]], "ops[0].weights is list: must be an array, or None"),
        ("tensor", "height", None, "tensors[0].height is None: must be an integer"),
        ("tensor", "scale", "x", "tensors[0].scale is 'x': must be a number"),
    ],
)
def test_a_graph_of_other_types(part, field, value, message):
    members = {"graph": GRAPH, "op": GRAPH.ops[0], "tensor": GRAPH.tensors[0]}
    changed: Any = dataclasses.replace(members[part], **{field: value})
    graph = {
        "graph": lambda: changed,
        "op": lambda: dataclasses.replace(GRAPH, ops=[changed, *GRAPH.ops[1:]]),
        "tensor": lambda: dataclasses.replace(GRAPH, tensors=[changed, *GRAPH.tensors[1:]]),
    }[part]()
    with pytest.raises(TypeError) as caught:
        pmt.Model.from_graph(graph)
    assert str(caught.value) == message


def test_a_choice_on_fewer_images_than_a_batch_takes_them_all(tmp_path):
    options = pmt.preset("default", queries=2)
    expected = "batch 25, the default, is larger than the 12 training images: a step takes all"
    with pytest.warns(pmt.errors.OptionWarning, match=expected):
        found = choose.select(MODEL, DATA, OTHERS, options=options, candidates=["B1", "head"])
    assert all(candidate.macs > 0 for candidate in found.candidates)


def test_a_board_is_emulated_from_a_folder_given_as_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no learner's project"):
        emulated_board(str(tmp_path)).__enter__()


def test_image_files_are_read_at_one_side_or_two(tmp_path):
    from PIL import Image

    folder = tmp_path / "train" / "a"
    folder.mkdir(parents=True)
    Image.fromarray(DATA.images[0]).save(folder / "0.png")
    files = datasets.image_files(tmp_path)
    assert files.read(size=4).images.shape == (1, 4, 4, 3)
    with pytest.raises(TypeError, match=r"^size='x' must be an integer$"):
        files.read(size=("x", "y"))
