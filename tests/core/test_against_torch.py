"""Where torch is installed: its forward pass and its gradients against ours."""

import sys
from pathlib import Path

import numpy as np
import pytest

import pmt
from pmt import _core
from pmt.quantization import float_activations, normalize

torch = pytest.importorskip("torch")


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    yield
    for name in [name for name in sys.modules if name.startswith("bundled_model")]:
        del sys.modules[name]


def test_the_float_graph_is_the_torch_network(scripts):
    from bundled_model.networks import fashion_mnist_graph
    from bundled_model.torch_network import TorchNetwork, trained_graph

    torch.manual_seed(0)
    network = TorchNetwork(fashion_mnist_graph(10), "random").eval()
    with torch.no_grad():
        for norm in network.norms.values():
            norm.running_mean.uniform_(-0.2, 0.2)
            norm.running_var.uniform_(0.5, 2.0)
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.uniform_(-0.3, 0.3)
        images = np.random.default_rng(0).integers(0, 256, (4, 28, 28, 1)).astype(np.uint8)
        expected = network(torch.tensor(images.transpose(0, 3, 1, 2)).float()).numpy()
    graph = trained_graph(network)
    found = float_activations(graph, normalize(graph, images))[graph.output]
    np.testing.assert_allclose(found.reshape(4, 10), expected, atol=1e-5)


def straight_through_gradient(model: pmt.Model, image: np.ndarray, label: int) -> np.ndarray:
    """Gradient of the loss by the int8 weights of `pointwise4`, rounding taken as the identity."""
    graph = model.to_graph()
    op, mean, head = graph.ops[-3], graph.ops[-2], graph.ops[-1]
    x_in, x_out, pooled = (graph.tensors[i] for i in (op.inputs[0], op.output, mean.output))
    inputs = model.core.activations(image)[op.inputs[0]].astype(np.float32) - x_in.zero_point
    weights = torch.tensor(op.weights[:, 0, 0].astype(np.float32), requires_grad=True)
    scale = torch.tensor(x_in.scale * op.weight_scales / x_out.scale)
    nodes = (torch.tensor(inputs) @ weights.T + torch.tensor(op.bias)) * scale + x_out.zero_point
    nodes = nodes.clamp(*op.clamp).mean(dim=(0, 1))
    features = (nodes - x_out.zero_point) * x_out.scale / pooled.scale
    logits = torch.tensor(head.weights.astype(np.float32)) @ features + torch.tensor(head.bias)
    logits = logits * torch.tensor(pooled.scale * head.weight_scales)
    torch.nn.functional.cross_entropy(logits[None], torch.tensor([label])).backward()
    return weights.grad.numpy()


def test_both_estimators_point_along_back_propagation():
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "contrast", 5)
    images = model.prepare(data.images[:1])
    label = data.labels[:1]
    exact = straight_through_gradient(model, images[0], int(label[0])).ravel()
    layer = model.select_layers("pointwise4")
    for rule, least in (("node", 0.7), ("weight", 0.6)):
        options = pmt.preset("default", queries=4096, rule=rule, train_bias=False)
        trainer = _core.Trainer(model.core, options.to_core(), layer, 1)
        estimate = sum(trainer.estimate(images, label, step, 0)[0] for step in range(4)) / 4
        cosine = estimate @ exact / (np.linalg.norm(estimate) * np.linalg.norm(exact))
        assert cosine > least
        assert estimate @ exact / (exact @ exact) == pytest.approx(1.0, abs=0.3)
