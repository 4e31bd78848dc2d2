"""Arguments of a wrong kind: one error that names the rule, and the remedy for the case."""

import re
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from networks import residual_network

import pmt
from pmt import quantization
from pmt.datasets import Dataset
from pmt.net.pixels import per_channel

PIXELS = np.zeros((2, 8, 8, 3), np.uint8)
DATA = Dataset(PIXELS, np.zeros(2, np.int64), ("a", "b", "c", "d"), "blank")
SHAPE = "images must have shape (N, 8, 8, 3) for this model; got "
DTYPE = (
    ": must be a NumPy array of uint8 pixels 0..255, or of float32 or int8 inputs that are not "
    "pixels"
)
NO_DATA = ": must be a pmt.datasets.Dataset or a tuple (x, y) of two arrays; "
OTHERS = NO_DATA + "pmt.datasets.from_torch, from_hugging_face and from_stream read other kinds"
BUNDLED = "fashion_mnist_dscnn, cifar10_mcunet, cifar10_small"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("fashion_mnist_dscn", "; did you mean 'fashion_mnist_dscnn'?"),
        ("Cifar10_Small", "; did you mean 'cifar10_small'?"),
        ("nothing", f"; give a file, a run folder, or one of {BUNDLED}"),
    ],
)
def test_a_name_that_is_none(path, message):
    with pytest.raises(FileNotFoundError) as caught:
        pmt.load(path)
    assert str(caught.value) == (
        f"path={path!r}: there is no such file, run folder or bundled model{message}"
    )


def test_what_is_no_path():
    with pytest.raises(TypeError) as caught:
        pmt.load(3)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "path=3 must be text or a path: a model file, the folder of a run, or the name of a "
        "bundled model"
    )
    with pytest.raises(TypeError) as caught:
        pmt.Model("net.pmt")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "image is str: must be the bytes of a .pmt image; pmt.load(path) reads a file"
    )


@pytest.mark.parametrize(
    ("library", "remedy"),
    [
        ("torch.nn.modules.module", "pmt.from_torch(module, images) quantizes a network of torch"),
        ("keras.src.models.model",
         "pmt.from_keras(model, images) quantizes a network of Keras"),
    ],
)  # fmt: skip
def test_a_network_of_another_library(library, remedy):
    parent = type("Parent", (), {"__module__": library})
    network = type("MyNet", (parent,), {})()
    with pytest.raises(TypeError, match=r"^path=MyNet must be text or a path: .*") as caught:
        pmt.load(network)
    assert str(caught.value).endswith(f"bundled model; {remedy}")


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("b2", "layers='b2': 'b2' is neither a block nor a layer; did you mean 'B2'?"),
        ("B2,heda", "layers='B2,heda': 'heda' is neither a block nor a layer; did you mean 'head'"),
        (
            [True],
            "layers=[True]: True is neither a block (B1, B2, B3, head, all) nor a layer; `pmt",
        ),
        ([99], "layers=[99]: 99 is neither a block (B1, B2, B3, head, all) nor a layer; `pmt"),
        ("", "layers='' selects no layer; `pmt info` lists the layers"),
        (2.0, "layers=2.0 must be names of blocks or layers, or op indices"),
    ],
)
def test_layers_that_are_none(layers, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        residual_network().select_layers(layers)
    assert str(caught.value).startswith(message)


def test_numpy_integers_are_integers():
    model = residual_network()
    assert model.select_layers(np.int64(2)) == [2]  # type: ignore[arg-type]
    assert model.evaluate(DATA, threads=np.int32(1)).n == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (PIXELS / 255, f"images is an array of float64{DTYPE}; scale pixels to 0..255 and "
         "convert them with .astype(numpy.uint8), other inputs with .astype(numpy.float32)"),
        (list(PIXELS), f"images is list{DTYPE}; numpy.stack(images) makes one array of images of "
         "one shape"),
        ("a.png", f"images is 'a.png'{DTYPE}; pmt.datasets.load(path) reads files"),
        (DATA, f"images is Dataset{DTYPE}; give the data set's .images"),
        (None, f"images is None{DTYPE}"),
        (PIXELS[0], f"{SHAPE}(8, 8, 3); one image needs an axis before its own: images[None]"),
        (np.zeros((3, 8, 8), np.uint8), f"{SHAPE}(3, 8, 8); channels come last, and one image "
         "needs an axis: images.transpose(1, 2, 0)[None]"),
        (np.zeros((2, 3, 8, 8), np.uint8), f"{SHAPE}(2, 3, 8, 8); channels come last: "
         "images.transpose(0, 2, 3, 1)"),
        (PIXELS[..., :2], f"{SHAPE}(2, 8, 8, 2); the model takes 3 channels, these have 2: use "
         "other images or another model"),
        (PIXELS[..., :1], f"{SHAPE}(2, 8, 8, 1); the model takes 3 channels, these have 1: "
         "images.repeat(3, axis=3)"),
        (PIXELS[:, :4], f"{SHAPE}(2, 4, 8, 3); Dataset.from_arrays(images, labels).resize(8, 8) "
         "or, of files, pmt.datasets.load(..., size=8) resizes"),
        (PIXELS[0, 0], f"{SHAPE}(8, 3)"),
        (PIXELS[0, :, :4], f"{SHAPE}(8, 4, 3); one image needs an axis before its own: "
         "images[None]"),
        (PIXELS.reshape(2, -1), f"{SHAPE}(2, 192); of flat rows give images.reshape(-1, 8, 8, 3)"),
        (PIXELS.reshape(2, -1).astype(np.float32), "inputs must have shape (N, 8, 8, 3) for this "
         "model, where axes of length 1 may be left out; got (N, 192); of flat rows give "
         "inputs.reshape(-1, 8, 8, 3)"),
        ((PIXELS, [0, 1]), f"images is tuple{DTYPE}; of a pair (x, y) give the images alone, x"),
        (tuple(PIXELS), f"images is tuple{DTYPE}; numpy.stack(images) makes one array of images "
         "of one shape"),
    ],
)  # fmt: skip
def test_images_of_a_wrong_kind(images, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        residual_network().prepare(images)
    assert str(caught.value) == message


def test_color_images_become_gray_as_the_error_says():
    model = pmt.load("fashion_mnist_dscnn")
    images = np.full((1, 28, 28, 3), (10, 100, 200), np.uint8)
    with pytest.raises(ValueError, match="the model takes 1 channel, these have 3: ") as caught:
        model.predict(images)
    gray = eval(str(caught.value).rpartition(": ")[2], {"images": images, "numpy": np})
    assert (gray.dtype, gray[0, 0, 0].tolist()) == (np.uint8, [84])  # as Pillow's convert("L")
    assert model.predict(gray).shape == (1,)


def test_gray_images_without_their_axis():
    model = pmt.load("fashion_mnist_dscnn")
    images = pmt.datasets.bundled("test").images[:3]
    gray = images[..., 0]
    np.testing.assert_array_equal(model.prepare(gray), model.prepare(images))
    np.testing.assert_array_equal(model.logits(gray), model.logits(images))
    np.testing.assert_array_equal(model.predict(gray), model.predict(images))
    np.testing.assert_array_equal(model.outputs(gray), model.outputs(images))
    assert model.logits(gray[:0]).shape == model.logits(images[:0]).shape == (0, 10)
    assert model.predict(gray[:0]).tolist() == []


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (
            "fashion_mnist_dscnn",
            (28, 28),
            "images must have shape (N, 28, 28, 1) for this model; got (28, 28); one image needs "
            "an axis before its own: images[None]",
        ),
        (
            "cifar10_small",
            (9000, 32, 32),
            "images must have shape (N, 32, 32, 3) for this model; got (9000, 32, 32); the model "
            "takes 3 channels, and gray images have one: images[..., None].repeat(3, axis=3)",
        ),
    ],
)
def test_gray_images_of_another_shape(model, shape, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pmt.load(model).predict(np.zeros(shape, np.uint8))


@pytest.mark.filterwarnings("ignore:data set 'data'. its inputs")
@pytest.mark.parametrize(
    ("name", "shape", "dtype", "message"),
    [
        ("cifar10_small", (20, 32, 32), np.uint8, "images must have shape (N, 32, 32, 3) for this "
         "model; got (20, 32, 32); the model takes 3 channels, and gray images have one: "
         "images[..., None].repeat(3, axis=3)"),
        ("cifar10_small", (20, 28, 28), np.uint8, "images must have shape (N, 32, 32, 3) for this "
         "model; got (20, 28, 28); the model takes 3 channels, and gray images have one: "
         "images[..., None].repeat(3, axis=3)"),
        ("fashion_mnist_dscnn", (20, 8, 8), np.uint8, "images must have shape (N, 28, 28, 1) for "
         "this model; got (20, 8, 8); Dataset.from_arrays(images, labels).resize(28, 28) or, of "
         "files, pmt.datasets.load(..., size=28) resizes"),
        ("fashion_mnist_dscnn", (20, 8, 8), np.float64, "inputs must have shape (N, 28, 28, 1) for "
         "this model, where axes of length 1 may be left out; got (N, 8, 8)"),
    ],
)  # fmt: skip
def test_a_pair_of_another_shape_is_refused_by_the_shape_that_was_given(
    name, shape, dtype, message
):
    pixels = np.random.default_rng(1).integers(0, 256, shape).astype(dtype)
    model, data = pmt.load(name), (pixels, np.arange(20) % 10)
    image = model.image()
    trainer = pmt.ZOTrainer(layers="head", batch=10)
    for call in (
        lambda: model.evaluate(*data),
        lambda: model.score_images(data),
        lambda: trainer.fit(model, *data),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            call()
    assert model.image() == image


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("cars", f"{{}} is 'cars'{NO_DATA}pmt.datasets.load('cars') reads files"),
        (None, f"{{}} is None{OTHERS}"),
        (
            PIXELS,
            f"{{}} is an array of uint8{NO_DATA}where no labels are needed, give "
            "Dataset.unlabeled(images)",
        ),
        (
            (PIXELS, None),
            "y is object: must be integers, the number of each image's class; for "
            "images without labels use Dataset.unlabeled(x)",
        ),
    ],
)
def test_data_of_a_wrong_kind(data, message):
    model = residual_network()
    trainer = pmt.ZOTrainer(epochs=1, batch=1)
    for call, argument in (
        (model.evaluate, "dataset"),
        (model.score_images, "dataset"),
        (lambda given: trainer.fit(model, given), "data"),
    ):
        with pytest.raises(TypeError) as caught:
            call(data)
        assert str(caught.value) == message.format(argument)
    if data is not None:
        with pytest.raises(TypeError) as caught:
            trainer.fit(model, DATA, valid=data)
        assert str(caught.value) == message.format("valid")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("net.pmt", "model is 'net.pmt': must be a pmt.Model; pmt.load('net.pmt') reads one"),
        (Path("net.pmt"), "model is PosixPath: must be a pmt.Model; pmt.load(path) reads one"),
        (DATA, "model is Dataset: must be a pmt.Model; pmt.load(path) reads one"),
    ],
)
def test_a_model_of_a_wrong_kind(model, message):
    trainer = pmt.ZOTrainer()
    source = pmt.protocol.DataSource("bundled")
    for call in (
        lambda: trainer.fit(model, DATA),
        lambda: trainer.cost(model),
        lambda: pmt.export_learner(model, target="qemu-mps2-an500", out="fw"),
        lambda: pmt.statistics(model, PIXELS),
        lambda: pmt.align(model, PIXELS),
        lambda: pmt.choose_input_stage(model, PIXELS),
        lambda: pmt.train.choose.select_block(model, source),
        lambda: pmt.Learner(model),
        lambda: pmt.Engine(model),
        lambda: pmt.predict(model, ["photos"]),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


def test_arguments_of_another_type():
    model = residual_network()
    engine = pmt.Engine(model, "head")
    trainer = pmt.ZOTrainer(epochs=1, batch=1)
    stop = pmt.callbacks.EarlyStopping(2)
    for call, message in (
        (lambda: model.with_input_stage("x"), "stage is 'x': must be a pmt.InputStage, or None"),
        (
            lambda: pmt.Model.from_graph(3),
            "graph is 3: must be a pmt.net.graph.Graph; model.to_graph() returns one",
        ),
        (lambda: model.logits(PIXELS, int8_logits="no"), "int8_logits='no' must be True or False"),
        (lambda: pmt.Engine(model, int8_logits=1), "int8_logits=1 must be True or False"),
        (lambda: pmt.Engine(model, seed=1.5), "seed=1.5 must be an integer"),
        (lambda: engine.random("head", 1.5), "step=1.5 must be an integer"),
        (
            lambda: engine.logits(PIXELS, "head", 3),
            "weights of layer 'head' must be a NumPy array of int8; got int; convert it by "
            "numpy.asarray(weights, numpy.int8)",
        ),
        (
            lambda: engine.logits(PIXELS, "head", nodes=3),
            "nodes of layer 'head' must be a NumPy array of int8; got int; convert it by "
            "numpy.asarray(nodes, numpy.int8)",
        ),
        (
            lambda: engine.logits([PIXELS]),
            f"images is list{DTYPE}; numpy.stack(images) makes one array of images of one shape",
        ),
        (
            lambda: pmt.Learner(model, windows="no"),
            "windows='no' must be True or False",
        ),
        (
            lambda: pmt.Learner(model, keeps_confirmed="no"),
            "keeps_confirmed='no' must be True or False",
        ),
        (
            lambda: pmt.Learner(model, keeps_activations="no"),
            "keeps_activations='no' must be True or False",
        ),
        (
            lambda: pmt.Learner(model, options="default"),
            "options is 'default': must be pmt.TrainingOptions; pmt.preset('default') makes some",
        ),
        (
            lambda: trainer.fit(model, DATA, callbacks=stop),
            f"callbacks={stop!r} must be a list of callables; a single one is given as [callback]",
        ),
        (
            lambda: trainer.fit(model, DATA, callbacks=[3]),
            "callbacks=[3] must be a list of callables; a single one is given as [callback]",
        ),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


def test_a_layer_that_is_no_name_and_a_phase_without_options():
    engine = pmt.Engine(residual_network(), "head")
    with pytest.raises(
        ValueError, match=r"^layer=\['head'\] is none of the engine's layers: head$"
    ):
        engine.weights(["head"])
    learner = pmt.Learner(residual_network(), samples=8)
    with pytest.raises(ValueError, match="phase='epochs' needs options, which name the layers"):
        learner.begin("epochs")


def test_a_data_set_is_no_data_source():
    model = residual_network()
    for call in (
        pmt.train.choose.select_block,
        pmt.train.prepare.align_model,
        pmt.train.prepare.store_statistics,
    ):
        with pytest.raises(TypeError) as caught:
            call(model, DATA)  # type: ignore[operator]
        assert str(caught.value) == (
            "data is Dataset: must be a pmt.protocol.DataSource, which names files; "
            "pmt.select takes data sets, pmt.statistics and pmt.align take arrays"
        )


def test_files_to_predict_are_a_sequence():
    with pytest.raises(
        TypeError, match=r"^files='a.png' must be a sequence of paths; give \[path\]$"
    ):
        pmt.predict(residual_network(), "a.png")
    with pytest.raises(
        TypeError,
        match=r"^files is an array of uint8: must be a .*; model.predict\(images\) takes arrays$",
    ):
        pmt.predict(residual_network(), PIXELS)


def test_a_data_set_and_its_file_change_places():
    with pytest.raises(
        TypeError, match=r"^dataset is 'a.npz': must be a pmt.datasets.Dataset or a"
    ):
        pmt.datasets.save_npz("a.npz", DATA)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["tflite", "onnx"])
def test_a_mean_that_is_no_number(suffix, tmp_path):
    pytest.importorskip(suffix)
    path = tmp_path / f"net.{suffix}"
    residual_network().save(path)
    with pytest.raises(TypeError, match=r"^input_mean='a': needs one number.* for each of 3 input"):
        pmt.load(path, input_mean="a", input_std="b")


@pytest.mark.parametrize(
    "value", ["12", True, np.True_, [True, 1, 2], ["1"] * 3, timedelta(1), 1j, [None] * 3, 10**400]
)
def test_what_is_no_number_is_no_mean_or_std(value):
    for name in ("input_mean", "input_std"):
        with pytest.raises(TypeError, match=rf"^{name}=.*: needs one number, or one for each of 3"):
            per_channel(name, value, 3, 1.0)
    for number in (12, 12.0, np.float32(12), np.int8(12), np.array(12), Fraction(12), [12] * 3):
        assert per_channel("input_mean", number, 3, 0.0).tolist() == [12.0] * 3


def test_names_of_data_sets():
    for name, remedy in (
        ("bundeld", "did you mean 'bundled'?"),
        ("cifar1O", "did you mean 'cifar10'?"),
        ("bundled", "pmt.datasets.bundled(split) reads the bundled images"),
        ("elsewhere", "check the path"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            pmt.datasets.load(name)
        assert str(caught.value) == f"{name}: no such file or folder; {remedy}"


MASKED = np.ma.masked_array(PIXELS, np.ones(PIXELS.shape, bool))
MASKED_LABELS = np.ma.masked_array(np.zeros(2, np.int64), [False, True])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: Dataset.from_arrays(MASKED, [0, 1]), "x"),
        (lambda: Dataset.from_arrays(PIXELS, MASKED_LABELS), "y"),
        (lambda: Dataset.from_arrays(PIXELS, [0, 1], groups=MASKED_LABELS), "groups"),
        (lambda: Dataset.with_targets(PIXELS, MASKED_LABELS / 2.0), "y"),
        (lambda: Dataset.unlabeled(MASKED), "images"),
        (lambda: Dataset(MASKED, DATA.labels, DATA.class_names, "masked"), "images"),
        (lambda: Dataset(PIXELS, MASKED_LABELS, DATA.class_names, "masked"), "labels"),
        (lambda: DATA.subset(MASKED_LABELS), "indices"),
        (lambda: residual_network().prepare(MASKED), "images"),
        (lambda: residual_network().predict(MASKED), "images"),
        (lambda: residual_network().evaluate(PIXELS, MASKED_LABELS), "y"),
        (lambda: pmt.Engine(residual_network()).losses(PIXELS, MASKED_LABELS), "labels"),
        (lambda: pmt.Learner(residual_network(), samples=8).observe(PIXELS, MASKED_LABELS),
         "labels"),
        (lambda: pmt.statistics(residual_network(), MASKED), "images"),
        (lambda: pmt.corruptions.corrupt(MASKED, "fog", 1), "images"),
        (lambda: pmt.corruptions.corrupt(PIXELS, "fog", 1, indices=MASKED_LABELS), "indices"),
    ],
)  # fmt: skip
def test_a_mask_is_not_dropped(call, argument):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == (
        f"{argument} is a masked array, whose mask counts for nothing; fill it"
    )


def test_what_numpy_makes_no_array_of():
    for given, kind in ((DATA, "Dataset"), ([[0], [0, 1]], "list")):
        with pytest.raises(TypeError) as caught:
            residual_network().evaluate(PIXELS, given)
        assert str(caught.value) == (
            f"y is {kind}, of which NumPy makes no array: must be an array, or rows of equal length"
        )


def test_a_tensor_that_numpy_cannot_read_says_how_it_can():
    torch = pytest.importorskip("torch")
    model, pixels = residual_network(), torch.from_numpy(PIXELS.copy())
    trained = torch.zeros(2, requires_grad=True)
    narrow = pixels.bfloat16()
    trainer = pmt.ZOTrainer(layers="head")
    for call, expected in (
        (lambda: trainer.fit(model, PIXELS, trained), "y is Tensor.*array: give y.detach()"),
        (lambda: model.evaluate(narrow, [0, 1]), "x is Tensor.*array: give x.float()"),
        (lambda: model.evaluate(PIXELS, narrow.requires_grad_()), "give y.detach().float()"),
        (lambda: model.evaluate(torch.eye(3).to_sparse(), [0]), "give x.to_dense()"),
        (lambda: model.predict(narrow), "; numpy.asarray(images.detach().float()) makes one"),
        (lambda: model.predict(pixels), "; numpy.asarray(images) makes one"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert re.search(f"{re.escape(expected)}$".replace(r"\.\*", ".*"), str(caught.value))


GRAPH = residual_network().to_graph()
FLOAT_GRAPH = "a pmt.quantization.FloatGraph; pmt.quantization.dequantize(graph) makes one"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantization.quantize_graph(None, PIXELS),
         f"float_graph is None: must be {FLOAT_GRAPH}"),
        (lambda: quantization.equalize(GRAPH, PIXELS), f"graph is Graph: must be {FLOAT_GRAPH}"),
        (lambda: quantization.activation_ranges(None, PIXELS),
         f"graph is None: must be {FLOAT_GRAPH}"),
        (lambda: quantization.float_logits(None, PIXELS), f"graph is None: must be {FLOAT_GRAPH}"),
        (lambda: quantization.float_logits(quantization.dequantize(GRAPH), None),
         "images is None: must be an array of images (N, H, W, C)"),
        (lambda: quantization.dequantize(None),
         "graph is None: must be a pmt.net.graph.Graph; model.to_graph() returns one"),
        (lambda: quantization.quantize_graph(quantization.dequantize(GRAPH), PIXELS, equalize="x"),
         "equalize='x' must be True or False"),
        (lambda: quantization.format_noise(None),
         "report is None: must be what signal_to_noise() returns"),
        (lambda: pmt.quantize(None, "bundled"),
         "model is None: must be the path of an .onnx file"),
        (lambda: pmt.quantize("net.onnx", PIXELS),
         "calibrate is an array of uint8: must be the path of a data set; pmt.quantization."
         "quantize_graph takes images"),
        (lambda: pmt.model.convert("cifar10_small", 3), "out is 3: must be text or a path"),
        (lambda: pmt.compare(residual_network(), DATA, residual_network()),
         "b is Dataset: must be a pmt.Model or the path of one; compare(a, b, data)"),
        (lambda: pmt.align(residual_network(), PIXELS, 3),
         "reference is 3: must be what pmt.train.prepare.measure_statistics(model, images) "
         "returns, or None"),
        (lambda: pmt.align(residual_network(), PIXELS, progress=3),
         "progress is 3: must be a callable, or None"),
        (lambda: pmt.ZOTrainer().fit(residual_network(), DATA, source=3),
         "source is 3: must be a dict that config.toml keeps, or None"),
        (lambda: pmt.ZOTrainer().fit(residual_network(), DATA, progress="x"),
         "progress is 'x': must be True, False, or a callable progress(step, record)"),
        (lambda: pmt.backprop.BackpropTrainer(3),
         "options is 3: must be BackpropOptions; single options are given by name, "
         "learning_rate=0.1"),
        (lambda: pmt.InputStage(None), "size=None must be (height, width)"),
        (lambda: pmt.InputStage((32, 32), "x"),
         "filters is 'x': must be a tuple of pmt.Filter; a single one is given as (filter,)"),
        (lambda: Dataset.from_arrays(PIXELS, [0, 1], class_names=3),
         "class_names=3 must be a sequence of names"),
        (lambda: pmt.datasets.concatenate(DATA), "parts is Dataset: must be a list of data sets"),
        (lambda: pmt.datasets.from_stream(None),
         "source is None: must be pairs (input, label), or a callable that returns an iterable of "
         "them"),
        (lambda: pmt.datasets.image_files(None), "path is None: must be text or a path"),
        (lambda: pmt.plots.plot_confusions(None, None),
         "before is None: must be a pmt.Confusion; model.confusion(data) returns one"),
        (lambda: pmt.plots.plot_memory(None),
         "profiles is None: must be a list of what "
         "pmt.profiling.profile.profile_method(model, method) returns"),
        (lambda: pmt.plots.plot_selection(None),
         "selection is None: must be what pmt.select() returns"),
        (lambda: pmt.plots.plot_sheet(None),
         "sheet is None: must be a pmt.sheets.Sheet; pmt.sheets.make_sheet(data) makes one"),
        (lambda: pmt.plots.plot_step_memory(None),
         "step is None: must be what pmt.profiling.step_memory.step_memory(model, method) returns"),
        (lambda: pmt.sheets.dataset_sheet(None),
         "dataset is None: must be a pmt.datasets.Dataset or a tuple (x, y) of two arrays; "
         "pmt.datasets.from_torch, from_hugging_face and from_stream read other kinds"),
        (lambda: pmt.sheets.stage_sheet(None, residual_network()),
         "seen is None: must be a dict of data sets by the label of their row"),
        (lambda: pmt.sheets.make_sheet("bundled", severities=3),
         "severities=3 must be a sequence of 1..5"),
        (lambda: pmt.formats.read(None), "path is None: must be text or a path"),
        (lambda: pmt.formats.write(None, "net.npz"),
         "graph is None: must be a pmt.net.graph.Graph; model.to_graph() returns one"),
        (lambda: pmt.export(residual_network(), target=None, out="fw", dataset=DATA),
         "target is None: must be text or a path"),
        (lambda: pmt.export(residual_network(), target="qemu-mps2-an500", out="fw", dataset=DATA,
                            options=3),
         "options is 3: must be pmt.TrainingOptions; pmt.preset('default') makes some"),
        (lambda: pmt.methods.resumed_trainer(None), "folder is None: must be a pmt.RunFolder"),
        (lambda: pmt.methods.open_run("cifar10_small", None, pmt.ZOTrainer(), "run"),
         "data is None: must be a pmt.protocol.DataSource, which names files; "
         "pmt.select takes data sets, pmt.statistics and pmt.align take arrays"),
    ],
)  # fmt: skip
def test_a_type_that_is_wrong(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pmt.load(""), "path='' names nothing; give the name of a file or folder"),
        (lambda: pmt.datasets.image_files(""),
         "path='' names nothing; give the name of a file or folder"),
        (lambda: residual_network().predict(PIXELS, threads=10**9),
         "threads=1000000000 must be at most 1024; 0 takes all"),
        (lambda: residual_network().predict(PIXELS, threads=10**30),
         f"threads={10**30} must be at most 1024; 0 takes all"),
        (lambda: pmt.ZOTrainer(preset=[]),
         "preset=[] is unknown; choose one of default, paper, released"),
        (lambda: pmt.sheets.make_sheet("bundled", severities=(6,)), "severities=6 must be 1..5"),
        (lambda: pmt.plots.plot_memory([], limits=[0]), "limits=0 must be 1..2147483647"),
    ],
)  # fmt: skip
def test_a_value_that_is_wrong(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
