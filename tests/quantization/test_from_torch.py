"""``pmt.from_torch``: a float network in memory becomes an int8 model in one call."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from float_networks import check_close
from install_hints import install_hint

import pmt
from pmt.datasets import Dataset
from pmt.net.pixels import input_formula
from pmt.quantization import quantize

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")
from torch import nn  # noqa: E402

TRAIN = pmt.datasets.bundled("train")[:64]
SAME = Dataset.from_arrays(TRAIN.images, TRAIN.labels)  # without names of classes


def network(channels: int = 1) -> nn.Sequential:
    """A network whose channels, rows and columns all differ, its batch norm as if trained."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(8)
    nn.init.uniform_(norm.running_mean, -0.3, 0.3)
    nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return nn.Sequential(
        nn.Conv2d(channels, 8, (3, 5), stride=2, bias=False), norm, nn.ReLU6(),
        nn.Conv2d(8, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 13 * 12, 10),
    )  # fmt: skip


def logits_of(module: nn.Module, images: np.ndarray, mean: Any = 0, std: Any = 255) -> Any:
    """Return the logits of the module in eval mode, for channels-last images."""
    inputs = torch.tensor((images - np.array(mean)) / std, dtype=torch.float32).permute(0, 3, 1, 2)
    with torch.no_grad():
        return module.eval()(inputs).numpy()


def test_batch_norm_and_the_order_of_axes_are_those_of_the_module():
    module = network()
    model = pmt.from_torch(module, TRAIN)
    assert model.input_shape == (28, 28, 1)
    assert [layer.kind for layer in model.layers] == ["conv2d", "conv2d", "fully_connected"]
    check_close(model.logits(TRAIN.images), logits_of(module, TRAIN.images))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch calls its exporter a legacy
def test_it_is_what_the_command_makes_of_the_exported_file(tmp_path):
    module, path = network().eval(), tmp_path / "net.onnx"
    torch.onnx.export(module, torch.zeros(1, 1, 28, 28), path, dynamo=False)
    filed = quantize(str(path), "bundled", limit=32, input_std=200.0).model
    whole = pmt.datasets.bundled("train")
    model = pmt.from_torch(module, whole, limit=32, input_std=200.0, name="net")
    kept = ("name", "class_names")
    assert [model.metadata[key] for key in kept] == [filed.metadata[key] for key in kept]
    for layer in model.layers:
        np.testing.assert_array_equal(model.weights(layer.index), filed.weights(layer.index))
        np.testing.assert_array_equal(model.bias(layer.index), filed.bias(layer.index))
    np.testing.assert_array_equal(model.logits(TRAIN.images), filed.logits(TRAIN.images))


def test_the_formula_of_pixels_is_that_of_normalize():
    colored = np.repeat(TRAIN.images, 3, axis=3)
    colored[..., 1] //= 2
    mean, std = (120.0, 100.0, 80.0), (60.0, 50.0, 40.0)
    module = network(3)
    model = pmt.from_torch(module, colored, input_mean=mean, input_std=std)
    check_close(model.logits(colored), logits_of(module, colored, mean, std))


def test_a_spread_of_pixels_divided_by_255_brings_a_warning():
    message = (
        "input_std=0.229: is in units of a 0..255 pixel, and below one of them; give 255 times the "
        "mean and std of pixels 0..1"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        pmt.from_torch(network(), TRAIN, limit=16, input_mean=0.485, input_std=0.229)
    assert [warning.filename for warning in caught] == [__file__]


def test_the_module_stays_as_it_was():
    module = network().train()
    module[1].eval()  # as where batch norm is frozen
    before = {name: value.clone() for name, value in module.state_dict().items()}
    pmt.from_torch(module, TRAIN)
    assert [part.training for part in module] == [True, False, True, True, True, True, True]
    assert module.training
    after = module.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_modes_come_back_after_an_error():
    module = network(3).train()
    with pytest.raises(ValueError, match="does not run"):
        pmt.from_torch(module, TRAIN)
    assert all(part.training for part in module.modules())


def pairs() -> Any:
    pixels = torch.tensor(TRAIN.images).permute(0, 3, 1, 2)
    return torch.utils.data.TensorDataset(pixels / 255, torch.tensor(TRAIN.labels))


@pytest.mark.parametrize(
    "given",
    [
        TRAIN.images,
        TRAIN.images[..., 0],
        TRAIN.images / 255,
        torch.tensor(TRAIN.images).permute(0, 3, 1, 2),
        torch.tensor(TRAIN.images).permute(0, 3, 1, 2) / 255,
        pairs(),
        torch.utils.data.DataLoader(pairs(), batch_size=24),
    ],
    ids=["uint8", "gray", "floats", "tensor", "tensor of floats", "torch Dataset", "DataLoader"],
)
def test_every_kind_of_calibration_gives_the_same_weights(given):
    module = network()
    expected, found = pmt.from_torch(module, SAME), pmt.from_torch(module, given)
    images = TRAIN.images
    np.testing.assert_array_equal(found.logits(images), expected.logits(images))


WINDOWS = np.random.default_rng(0).normal(size=(16, 40, 3)).astype(np.float32)


@pytest.mark.parametrize(
    "given",
    [
        {"calibration": WINDOWS, "features": True},
        {"calibration": torch.tensor(WINDOWS).permute(0, 2, 1), "features": True},
        {"calibration": Dataset.from_arrays(WINDOWS, np.arange(16) % 2)},
    ],
    ids=["array", "tensor", "data set"],
)
def test_windows(given):
    torch.manual_seed(0)
    convolutions = (nn.Conv1d(3, 6, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1))
    module = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(6, 2))
    model = pmt.from_torch(module, **given)
    assert model.input_shape == (1, 40, 3)
    with torch.no_grad():
        expected = module(torch.tensor(WINDOWS).permute(0, 2, 1)).numpy()
    check_close(model.logits(WINDOWS[:, None]), expected)


@pytest.mark.parametrize("first", [(), (nn.Flatten(),)], ids=["linear", "flatten"])
def test_vectors(first):
    torch.manual_seed(0)
    module = nn.Sequential(*first, nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    inputs = torch.randn(16, 12)
    model = pmt.from_torch(module, inputs, features=True)
    assert model.input_shape == (1, 1, 12)
    with torch.no_grad():
        check_close(model.logits(inputs.numpy()[:, None, None]), module(inputs).numpy())
    with pytest.raises(ValueError, match=r"^input_mean=0: the network reads 12 channels"):
        pmt.from_torch(module, inputs, features=True, input_mean=0)


def test_columns_of_unequal_scale_bring_a_warning():
    inputs = torch.linspace(-1.0, 1.0, 16)[:, None] * torch.tensor([1000.0, 1.0, 30.0])
    message = (
        "data set 'calibration': the model's input loses 1 of its 3 columns: the narrowest spans "
        "2, the widest 2000, and a step of int8 is 7.843; standardize the columns, "
        "(x - mean) / std, before the float network is trained"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        pmt.from_torch(nn.Linear(3, 2), inputs, features=True, ranges="minmax")
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize("rank", [1, 2])
def test_vectors_as_channels_of_a_convolution(rank):
    torch.manual_seed(0)
    convolution = (nn.Conv1d, nn.Conv2d)[rank - 1](12, 8, 1)
    module = nn.Sequential(convolution, nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    inputs = torch.randn(16, 12)
    model = pmt.from_torch(module, inputs, features=True)
    assert model.input_shape == (1, 1, 12)
    with torch.no_grad():
        expected = module(inputs.reshape(16, 12, *[1] * rank)).numpy()
    check_close(model.logits(inputs.numpy()), expected)


def test_a_network_of_features_takes_no_pixels(tmp_path):
    torch.manual_seed(0)
    spectra = torch.randn(16, 1, 28, 28)
    model = pmt.from_torch(network(), spectra, features=True)
    message = "^images are uint8 pixels, but the model was quantized for inputs that are not pixels"
    for suffix in (".pmt", ".onnx"):
        model.save(tmp_path / f"net{suffix}")
        with pytest.raises(TypeError, match=message):
            pmt.load(tmp_path / f"net{suffix}").evaluate(TRAIN)
    assert model.logits(spectra.numpy().transpose(0, 2, 3, 1)).shape == (16, 10)
    assert input_formula(model.to_graph()).startswith("int8 = round(real / ")
    with pytest.warns(UserWarning, match=r"\d% of its inputs lie outside .*, which the model"):
        model.logits(TRAIN.images.astype(np.float32))
    with pytest.raises(ValueError, match=r"^no input stage can be chosen: the inputs are "):
        pmt.choose_input_stage(model, TRAIN.images)
    with pytest.raises(
        pmt.errors.OptionError, match=r"^choose_input=True: the model was quantized"
    ):
        pmt.Learner(model, choose_input=True)


def test_other_precisions_and_compiled_modules():
    module = network()
    expected = pmt.from_torch(module, TRAIN).logits(TRAIN.images)
    for other in (network().double(), torch.compile(network(), backend="eager")):
        model = pmt.from_torch(other, TRAIN)
        assert model.metadata["name"] == "Sequential"
        np.testing.assert_allclose(model.logits(TRAIN.images), expected, atol=1e-6)


def test_classes_have_the_names_of_the_data_or_those_given():
    module = network()
    assert pmt.from_torch(module, TRAIN).class_names == TRAIN.class_names
    assert pmt.from_torch(module, TRAIN.images).class_names is None
    letters = list("abcdefghij")
    assert pmt.from_torch(module, TRAIN, class_names=letters).class_names == tuple(letters)
    with pytest.raises(ValueError, match=r"^class_names gives 2 names for the 10 logits"):
        pmt.from_torch(module, TRAIN, class_names=["a", "b"])


class Broken(nn.Module):
    """A network whose program is wrong."""

    def forward(self, x: Any) -> Any:
        return {}["x"]


def scaled(factor: float) -> nn.Sequential:
    module = network()
    with torch.no_grad():
        module[0].weight *= factor
    return module


class Singular(nn.Module):
    """A network that no ONNX operator expresses."""

    def forward(self, x: Any) -> Any:
        return torch.linalg.svdvals(x)


@pytest.mark.parametrize(
    ("module", "calibration", "error", "message"),
    [
        (3, TRAIN, TypeError, "module is 3: must be a torch.nn.Module; build the network and"),
        ("net.onnx", TRAIN, TypeError, "module is 'net.onnx': must be a torch.nn.Module; pmt."),
        (network(), "photos", TypeError, "calibration is 'photos': must be a pmt.datasets.Dat"),
        (network(), TRAIN[:7], ValueError, "the calibration set has 7 images, but must have at"),
        (network(), TRAIN.images[:0], ValueError, "calibration is empty: give some hundred"),
        (network(3), TRAIN, ValueError, "module: Sequential does not run on zeros in the shape of "
         "an input of calibration, (1, 1, 28, 28): RuntimeError: Given groups=1, weight of size ["),
        (Broken(), TRAIN, ValueError, "module: Broken does not run on zeros in the shape of an "
         "input of calibration, (1, 1, 28, 28): KeyError: 'x'; if it reads another size or other "
         "channels, give those (.resize(height, width) of a data set resizes images), else correct "
         "its forward"),
        (scaled(1e20), TRAIN, ValueError, "the network: beyond the limits of an image: op '0' has "
         "weight scales outside of 1e-30 to 1e+06; use a smaller network, or where scales are out"),
        (network(), TRAIN.images.astype(float), ValueError, "calibration: float images must lie"),
        (Singular(), TRAIN, ValueError, "module: torch.onnx.export refuses Singular: Exporting"),
        (nn.Sequential(network(), nn.GELU(), nn.Linear(10, 2)), TRAIN, ValueError,
         "module Sequential: 1 thing is not supported:\n- node '/1/Gelu' (Gelu): this operator"),
    ],
)  # fmt: skip
def test_refused(module, calibration, error, message):
    with pytest.raises(error) as caught:
        pmt.from_torch(module, calibration)
    assert str(caught.value).startswith(message)


def test_nothing_is_printed_before_an_error(capfd):
    with pytest.raises(ValueError, match="refuses Singular"):
        pmt.from_torch(Singular(), TRAIN)
    assert capfd.readouterr() == ("", "")


def test_the_cause_of_an_error_is_kept():
    with pytest.raises(ValueError, match="does not run") as caught:
        pmt.from_torch(Broken(), TRAIN)
    assert isinstance(caught.value.__cause__, KeyError)


def test_options_out_of_range():
    with pytest.raises(ValueError, match=r"^limit=-1 must be 0\.\."):
        pmt.from_torch(network(), TRAIN, limit=-1)
    with pytest.raises(ValueError, match=r"^ranges='max' is unknown; choose one of minmax"):
        pmt.from_torch(network(), TRAIN, ranges="max")  # type: ignore[arg-type]
    floats = Dataset.from_arrays(TRAIN.images / 255, TRAIN.labels)
    message = "input_std: calibration holds inputs that are not pixels; leave it out"
    with pytest.raises(ValueError, match=message):
        pmt.from_torch(network(), floats, input_std=60.0)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError) as caught:
        pmt.from_torch(object(), TRAIN)
    assert str(caught.value) == f"pmt.from_torch needs the package torch: {install_hint('torch')}"


def test_logits_beyond_a_hard_sigmoid_at_the_end_are_equal():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
    with torch.no_grad():
        body[1].weight *= 20.0
    images = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
    ends = pmt.from_torch(nn.Sequential(body, nn.Hardsigmoid()), images, input_std=255.0)
    logits = ends.logits(images)
    with torch.no_grad():
        wide = body(torch.from_numpy(images.transpose(0, 3, 1, 2) / 255.0).float()).numpy()
    assert (np.abs(wide) > 4.0).mean() > 0.3
    np.testing.assert_allclose(logits, wide.clip(-3.0, 3.0), atol=0.4)
    assert np.abs(logits).max() < 3.1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda module: module.bfloat16(),
         "module: 0.weight is bfloat16, which is not read; convert a copy, "
         "copy.deepcopy(module).float()"),
        (lambda module: module.to("meta"),
         "module: 0.weight is on the device meta and has no values; load them with "
         "module.to_empty(device='cpu') and load_state_dict"),
    ],
)  # fmt: skip
def test_parameters_that_hold_no_numbers_to_read(changed, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pmt.from_torch(changed(network()), TRAIN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"class_names": 3}, "class_names=3 must be a sequence of names"),
        ({"equalize": "x"}, "equalize='x' must be True or False"),
        ({"features": None}, "features=None must be True or False"),
    ],
)
def test_arguments_of_a_wrong_type(given, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        pmt.from_torch(network(), TRAIN, **given)
    with pytest.raises(
        TypeError, match=r"^model is Sequential: must be the path of an \.onnx file; "
    ):
        quantize(network(), "bundled")  # type: ignore[arg-type]


class Items(torch.utils.data.Dataset):
    """Inputs as they are, each with the label 0."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Any:
        return self.inputs[index], 0


@pytest.mark.parametrize("size", [(32, 3), (3, 32), (8, 8)])
@pytest.mark.parametrize(
    "given",
    [
        np.asarray,
        torch.from_numpy,
        lambda windows: Dataset.from_arrays(windows, np.zeros(64, int)),
        Items,
        lambda windows: Items(torch.from_numpy(windows)),
        lambda windows: torch.utils.data.DataLoader(Items(windows), batch_size=24),
    ],
    ids=["array", "tensor", "data set", "Dataset of arrays", "Dataset of tensors", "DataLoader"],
)
def test_a_network_that_flattens_windows_takes_them_as_they_are(size, given):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(size[0] * size[1], 5))
    windows = np.random.default_rng(0).normal(size=(64, *size)).astype(np.float32)
    model = pmt.from_torch(module, given(windows), features=True)
    assert model.input_shape == (1, *size)
    with torch.no_grad():
        check_close(model.logits(windows), module(torch.from_numpy(windows)).numpy())


class Written(nn.Module):
    """A head whose forward is given."""

    def __init__(self, forward: Any, values: int = 36) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.head, self.written = nn.Linear(values, 5), forward

    def forward(self, x: Any) -> Any:
        return self.written(self.head, x)


INPUTS = torch.randn(16, 12, 1, 3, generator=torch.Generator().manual_seed(0))
MAPS = torch.randn(16, 12, 5, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("module", "inputs", "shape"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 5)), INPUTS, (1, 3, 12)),
        (nn.Sequential(nn.Flatten(), nn.Linear(180, 5)), MAPS, (5, 3, 12)),
        (Written(lambda head, x: head(x.mean(-1)), 12), MAPS[:, :, 0], (1, 3, 12)),
        (nn.Conv2d(12, 5, 1), MAPS, (5, 3, 12)),
        (Written(lambda head, x: {"logits": head(x.flatten(1))}), INPUTS, (1, 3, 12)),
        (Written(lambda head, x: head(x.view(1, -1))), INPUTS, (1, 3, 12)),
        (Written(lambda head, x: head(x.flatten(1)).squeeze()), INPUTS, (1, 3, 12)),
    ],
    ids=["flat windows", "flat maps", "mean", "map", "dict", "batch of one", "squeeze"],
)
def test_tensors_have_channels_first(module, inputs, shape):
    model = pmt.from_torch(module, inputs, features=True)
    assert model.input_shape == shape
    with torch.no_grad():
        outputs = [module(one[None]) for one in inputs]
    outputs = [one["logits"] if isinstance(one, dict) else one for one in outputs]
    expected = np.stack([np.moveaxis(one.numpy(), min(1, one.ndim - 1), -1) for one in outputs])
    found = model.logits(np.moveaxis(inputs.numpy(), 1, -1).reshape(16, *shape))
    check_close(found.reshape(16, -1), expected.reshape(16, -1))


WRITTEN = (
    "; let its forward treat each input by itself, by x.flatten(1) instead of x.view(1, -1), "
    "without x.shape[0] in arithmetic, means over the batch or branches on values"
)


ALONE = "one at a time are not those of the network that was exported, with zeros"
TOGETHER = "in one batch are not those of one at a time, with which it was exported"


@pytest.mark.parametrize(
    ("forward", "problem", "told"),
    [
        (lambda head, x: head(x.flatten(1)) * x.shape[0], TOGETHER,
         "differ by up to 13.1, and an output spans at most 2.76"),
        (lambda head, x: head(x.flatten(1)) * x.shape[0] + 1e4, TOGETHER,
         "differ by up to 13.1, and an output spans at most 2.76"),
        (lambda head, x: (head(x.flatten(1)) * x.shape[0]).softmax(-1), TOGETHER,
         "differ by up to 0.636, and an output spans at most 0.379"),
        (lambda head, x: head(x.flatten(1)) if x.min() == 0.0 else head(x.flatten(1) + 1.0), ALONE,
         "differ by up to 1.17, and an output spans at most 2.76"),
        (lambda head, x: head(x.flatten(1)) + (1.0 if x.mean() > 0.1 else 0.0), ALONE,
         "differ by up to 1, and an output spans at most 2.76"),
        (lambda head, x: head(x.flatten(1)).mean(0, keepdim=True), TOGETHER, "have shape (1, 5)"),
        (lambda head, x: (head(x.flatten(1)) * (1 if x.max() == 0 else -1)).sigmoid(), ALONE,
         "differ by up to 0.732, and an output spans at most 0.575"),
        (lambda head, x: (head(x.flatten(1)) * (1 if x.max() == 0 else -1)).argmax(1), ALONE,
         "are other classes 8 times"),
    ],
    ids=["size", "size beside an offset", "size before a softmax", "branch",
         "branch of some inputs", "mean", "sigmoid", "classes"],
)  # fmt: skip
def test_outputs_that_depend_on_the_batch_or_on_a_branch_are_refused(forward, problem, told):
    message = (
        "module: the outputs of Written for 8 inputs of calibration "
        f"{problem}: they {told}{WRITTEN}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pmt.from_torch(Written(forward), INPUTS, features=True)


class Defaults(nn.Module):
    """A network whose forward has parameters besides the input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(36, 5)

    def forward(self, x: Any, top: float = 0.5, flat: bool = True, *, factor: int = 3) -> Any:
        return self.head(x.flatten(1) if flat else x).clamp(0.0, top) * factor


def test_other_parameters_of_forward_have_their_defaults():
    module = Defaults()
    model = pmt.from_torch(module, INPUTS, features=True)
    with torch.no_grad():
        expected = module(INPUTS).numpy()
    assert expected.max() == 1.5
    check_close(model.logits(np.moveaxis(INPUTS.numpy(), 1, -1)), expected)
    assert "forward" not in vars(module)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: nn.functional.dropout(x, 0.5, training=True),
        lambda x: nn.functional.batch_norm(x, torch.zeros(12), torch.ones(12), training=True),
    ],
    ids=["dropout", "batch norm"],
)
def test_functions_that_always_train_are_told(function):
    def forward(head, x):
        return head(function(x).flatten(1))

    message = (
        r": it is in training mode: call model\.eval\(\) before the export; functions of "
        r"torch need training=self\.training$"
    )
    with pytest.raises(ValueError, match=message):
        pmt.from_torch(Written(forward), INPUTS, features=True)


CONSTANT = nn.Linear(36, 5)
nn.init.zeros_(CONSTANT.weight)
SATURATED = nn.Linear(36, 5)
nn.init.constant_(SATURATED.bias, -1e4)
NORM = nn.BatchNorm1d(36, affine=False)
nn.init.constant_(NORM.running_mean, 1e3)


@pytest.mark.parametrize(
    "module",
    [
        CONSTANT,
        SATURATED,
        nn.Sequential(SATURATED, nn.ReLU()),
        nn.Sequential(nn.Linear(36, 5), nn.Softmax(1)),
        nn.Sequential(SATURATED, nn.LogSoftmax(1)),
        nn.Sequential(NORM, nn.Linear(36, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)),
        nn.Sequential(nn.Linear(36, 1), nn.Flatten(0)),
    ],
    ids=["constant", "offset", "zeros", "softmax", "log softmax", "norms", "no batch"],
)
def test_rounding_is_no_difference(module):
    for offset in (0.0, 1000.0):
        pmt.from_torch(module, INPUTS[:, :, 0].flatten(1) + offset, features=True)


def test_inputs_that_rounding_blurs_are_to_be_centered():
    norm = nn.BatchNorm1d(36, affine=False)
    nn.init.constant_(norm.running_mean, 1e6)
    torch.manual_seed(0)
    module = nn.Sequential(norm, nn.Linear(36, 5))
    message = (
        r"; the inputs, around 1e\+06, span at most 5\.19, which rounding blurs; subtract their "
        "mean from them before the network reads them, in its training, too$"
    )
    with pytest.raises(ValueError, match=message):
        pmt.from_torch(module, INPUTS[:, :, 0].flatten(1) + 1e6, features=True)


def test_pixels_and_half_precision_pass_the_comparison_with_the_module():
    module = network(3).half()
    colored = np.repeat(TRAIN.images, 3, axis=3)
    model = pmt.from_torch(module, colored, input_mean=(120.0, 100.0, 80.0), input_std=50.0)
    check_close(
        model.logits(colored), logits_of(module.float(), colored, (120.0, 100.0, 80.0), 50.0)
    )


def test_threads_that_export_wait_for_one_another():
    modules = [network() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda module: pmt.from_torch(module, TRAIN), modules))
    images = [model.image() for model in models]
    assert images == images[:1] * 4


def test_vectors_without_features_are_told():
    message = (
        r"^calibration has shape \(64, 12\): images are \(N, H, W, C\); give features=True for"
    )
    with pytest.raises(ValueError, match=message):
        pmt.from_torch(nn.Linear(12, 3), np.zeros((64, 12), np.float32))


def test_a_program_of_torch_export_is_named_as_such():
    exported = torch.export.export(nn.Sequential(nn.Linear(3, 2)), (torch.zeros(1, 3),)).module()
    with pytest.raises(ValueError, match=r"^module: a program of torch.export has no eval mode; g"):
        pmt.from_torch(exported, np.ones((8, 3), np.float32), features=True)
