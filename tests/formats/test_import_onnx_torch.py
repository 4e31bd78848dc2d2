"""Exports of torch: the classical families of networks, our float forward against torch's."""

import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from pmt.formats.onnx import float_importer as onnx_float  # noqa: E402
from pmt.quantization import float_activations  # noqa: E402


def conv_norm(inputs: int, out: int, side: int, stride: int = 1, groups: int = 1) -> list:
    padding = side // 2
    conv = nn.Conv2d(inputs, out, side, stride, padding, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(out)]


class Residual(nn.Module):
    def __init__(self, inputs: int, out: int, stride: int) -> None:
        super().__init__()
        first, second = conv_norm(inputs, out, 3, stride), conv_norm(out, out, 3)
        self.body = nn.Sequential(*first, nn.ReLU(), *second)
        same = stride == 1 and inputs == out
        self.skip = nn.Identity() if same else nn.Sequential(*conv_norm(inputs, out, 1, stride))

    def forward(self, x):
        return functional.relu(self.body(x) + self.skip(x))


class Inverted(nn.Module):
    def __init__(self, inputs: int, out: int, stride: int) -> None:
        super().__init__()
        wide = inputs * 4
        depthwise = conv_norm(wide, wide, 3, stride, wide)
        layers = [*conv_norm(inputs, wide, 1), nn.ReLU6(), *depthwise, nn.ReLU6()]
        self.body = nn.Sequential(*layers, *conv_norm(wide, out, 1))
        self.same = stride == 1 and inputs == out

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


class Mixture(nn.Module):
    """Pre-activation, groups, dilation, uneven pads, rounded pools, a flattened map."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.grouped = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
        self.head = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.grouped(functional.relu(self.norm(x)))
        x = functional.avg_pool2d(x, 3, 2, 1)
        x = functional.max_pool2d(functional.pad(x, (1, 2, 0, 1)) - 0.1, 3, 2, ceil_mode=True)
        x = functional.avg_pool2d(x, (5, 6), 1)
        return torch.log_softmax(self.head(x.view(x.size(0), -1)), 1)


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 20), nn.ReLU(), nn.Dropout(), nn.Linear(20, 10)),
    )


def ending(*layers: nn.Module, channels: int) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


NETWORKS = {
    "lenet": lenet,
    "resnet": lambda: ending(
        *conv_norm(3, 8, 3), nn.ReLU(), Residual(8, 8, 1), Residual(8, 16, 2), channels=16
    ),
    "mobilenet": lambda: ending(
        *conv_norm(3, 8, 3, 2), nn.ReLU6(), Inverted(8, 8, 1), Inverted(8, 16, 2), channels=16
    ),
    "mixture": Mixture,
}


def made(name: str) -> nn.Module:
    """A network at inference, its statistics as if it had been trained."""
    torch.manual_seed(0)
    network = NETWORKS[name]().eval()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.3, 0.3)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.3, 0.3)
    return network


def export(network: nn.Module, path: Path, **options) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, torch.zeros(1, 3, 32, 32), path, **options)


def check(network: nn.Module, path: Path):
    graph = onnx_float.read(path, input_mean=0.0, input_std=1.0)
    inputs = np.random.default_rng(1).normal(size=(3, 32, 32, 3)).astype(np.float32)
    with torch.no_grad():
        expected = network(torch.tensor(inputs.transpose(0, 3, 1, 2).copy())).numpy()
    found = float_activations(graph, inputs)[graph.output].reshape(3, -1)
    if graph.metadata["dropped_operators"]:
        found = found - np.log(np.exp(found).sum(1, keepdims=True))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    return graph


@pytest.mark.parametrize(
    "options",
    [
        {"opset_version": 9},
        {"opset_version": 17, "dynamic_axes": {"x": {0: "n"}}, "input_names": ["x"]},
        {"opset_version": 20, "training": torch.onnx.TrainingMode.PRESERVE,
         "do_constant_folding": False},
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_torchscript_exporter(name, options, tmp_path):
    network = made(name)
    export(network, tmp_path / "net.onnx", dynamo=False, **options)
    graph = check(network, tmp_path / "net.onnx")
    if name == "mobilenet":
        layers = ["conv2d", "depthwise_conv2d", "conv2d"]
        body = ["conv2d", *layers, "add", *layers, "mean", "fully_connected"]
        assert [op.kind for op in graph.ops] == body


def test_layers_are_named_after_their_modules(tmp_path):
    export(made("resnet"), tmp_path / "net.onnx", dynamo=False, opset_version=17)
    graph = onnx_float.read(tmp_path / "net.onnx")
    names = [op.name for op in graph.ops]
    assert names[:4] == ["0", "3.body.0", "3.body.3", "3"]
    assert graph.ops[-1].name == "7"
    assert graph.input_std == (255.0, 255.0, 255.0)


def test_weights_beside_the_file(tmp_path):
    network, path = made("resnet"), tmp_path / "net.onnx"
    export(network, path, dynamo=False, opset_version=17)
    outside = {"location": "net.onnx.data", "size_threshold": 0}
    onnx.save(onnx.load(path), path, save_as_external_data=True, **outside)
    assert (tmp_path / "net.onnx.data").is_file()
    check(network, path)
