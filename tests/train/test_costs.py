"""Work and memory against figures counted by hand, and against the paper's."""

from itertools import pairwise

import pytest
from networks import CONV, DEPTH, HEAD, chain, residual_network

import pmt
from pmt import _core
from pmt.baselines.backprop.cost import Arithmetic, backward_memory, backward_work
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.baselines.sparse_update.contribution import layer_memory, scheme_memory
from pmt.baselines.sparse_update.options import PUBLISHED, published_scheme
from pmt.model import Model
from pmt.train.costs.memory import arena_bytes, inference_moments, peak_moment, zeroth_order_memory
from pmt.train.costs.work import device_restarts, zeroth_order_work


def test_the_work_of_full_back_propagation():
    work = backward_work(chain(), UpdateScheme.whole([0, 1, 3], chain()))
    assert work.forward == CONV + DEPTH + HEAD
    assert work.input_gradients == DEPTH + HEAD  # none by the image
    assert work.weight_gradients == CONV + DEPTH + HEAD
    assert work.macs == 3 * (CONV + DEPTH + HEAD) - CONV
    assert work.cost(7) == pmt.train.zo_trainer.Cost(0, 7 * work.macs)


@pytest.mark.parametrize(
    ("updates", "inputs", "weights"),
    [
        ([LayerUpdate(3, 8, True)], 0, HEAD),
        ([LayerUpdate(3, 2, False)], 0, HEAD // 4),
        ([LayerUpdate(1, 0, True)], HEAD, 0),
        ([LayerUpdate(0, 1, False), LayerUpdate(3, 0, True)], DEPTH + HEAD, CONV // 2),
    ],
)
def test_the_work_of_sparse_back_propagation(updates, inputs, weights):
    work = backward_work(chain(), UpdateScheme(tuple(updates)))
    assert (work.input_gradients, work.weight_gradients) == (inputs, weights)


def test_the_memory_of_full_back_propagation():
    scheme = UpdateScheme.whole([0, 1, 3], chain())
    memory = backward_memory(chain(), scheme, Arithmetic(value=1), batch=1)
    # The peak is the backward pass of the depthwise layer: its input and its output have gradients
    # (128 values each), its input and the image are kept, two clamped layers have masks.
    assert memory.activation_gradients == 4 * (128 + 128)
    assert (memory.saved_activations, memory.input, memory.masks) == (128, 32, 16 + 16)
    assert memory.weight_gradients == 4 * (72 + 8)
    assert (memory.weights, memory.biases, memory.frozen) == (144 + 72 + 32, 4 * 20, 0)
    assert memory.activations == memory.optimizer == memory.buffers == 0
    assert memory.sram == 248 + 80 + 1024 + 128 + 32 + 32 + 320


def test_gradients_of_a_batch_are_all_alive():
    scheme = UpdateScheme.whole([0, 1, 3], chain())
    one = backward_memory(chain(), scheme, Arithmetic(value=1), batch=1)
    many = backward_memory(chain(), scheme, Arithmetic(value=1), batch=2)
    assert many.weight_gradients == 4 * (248 + 20)
    assert many == backward_memory(chain(), scheme, Arithmetic(value=1), batch=64)
    assert one.sram < many.sram


def test_float_back_propagation_takes_four_bytes_and_keeps_its_masks():
    scheme = UpdateScheme.whole([0, 1, 3], chain())
    integer = backward_memory(chain(), scheme, Arithmetic(value=1, shadow=4, state=8))
    real = backward_memory(chain(), scheme, Arithmetic(value=4))
    assert real.weights == 4 * integer.weights
    assert real.saved_activations == 4 * integer.saved_activations
    assert real.masks == integer.masks
    assert integer.optimizer == 4 * 248 + 8 * (248 + 20)


def test_training_the_head_alone_has_the_peak_of_inference():
    memory = backward_memory(chain(), UpdateScheme.whole([3], chain()), Arithmetic())
    assert memory.activations == 128 + 128
    assert memory.sram == 256 + 32 + 16
    assert memory.frozen == 144 + 72 + 4 * 16


def biases_of(*layers: int) -> UpdateScheme:
    return UpdateScheme(tuple(LayerUpdate(op, 0, True) for op in layers))


def test_biases_need_masks_but_no_activations():
    memory = backward_memory(chain(), biases_of(0, 1, 3), Arithmetic())
    assert memory.saved_activations == memory.input == memory.weights == 0
    assert memory.masks == 32
    assert memory.activation_gradients == 4 * (128 + 128)


def test_a_residual_keeps_its_gradient_until_both_branches_are_through():
    model = residual_network()
    memory = backward_memory(model, biases_of(0), Arithmetic())
    # While `depth` goes backward: its input and output, and the stem's gradient by the addition.
    assert memory.activation_gradients == 4 * (8 * 8 * 16 + 8 * 8 * 16 + 8 * 8 * 8)


def test_zeroth_order_parts_add_up_to_the_arena():
    model = residual_network()
    layers = model.select_layers("all")
    for preset in ("default", "paper"):
        for scope in ("layer_wise", "model_wise"):
            options = pmt.preset(preset, queries=8, scope=scope).to_core()
            memory = zeroth_order_memory(model, options, layers, batch=5)
            assert memory.sram == arena_bytes(model.core, options, layers, 5)
            assert min(memory.to_json().values()) >= 0
            assert memory.weights == sum(layer.weights for layer in model.layers)


def test_the_core_tells_the_parts_of_the_arena():
    model = residual_network()
    layers = model.select_layers("B2,head")

    def parts(**changes) -> dict[str, int]:
        options = pmt.preset("paper", queries=8, **changes).to_core()
        return _core.DeviceMemory(model.core, options, layers, 4).parts()

    expected = {
        "weights": 144 + 128 + 32,
        "biases": 4 * (16 + 8 + 4),
        "activations": 2512,
        "gradient": 8 * (144 + 16),
        "tables": 4 * (4 * 16 + 8) + 8 * 4 + 36 * 8,
        "lists": 884,
        "buffers": 3276,
    }
    assert parts() == expected
    assert parts(train_weights=False)["weights"] == 0


def test_buffers_at_the_peak_of_a_plan_share_no_byte():
    model = residual_network()
    layers = model.select_layers("all")
    for preset in ("default", "paper"):
        device = _core.DeviceMemory(model.core, pmt.preset(preset).to_core(), layers, 1)
        peak = peak_moment(device, layers)
        ends = sorted((b["offset"], b["offset"] + b["bytes"]) for b in peak.buffers)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))
        assert 0 < peak.bytes <= device.activation_bytes


def test_plans_of_queries_do_not_depend_on_those_before():
    model = residual_network()
    layers = model.select_layers("all")
    device = _core.DeviceMemory(model.core, pmt.preset("default").to_core(), layers, 1)
    main = device.plan()
    queries = {layer: device.query_plan(layer) for layer in layers}
    assert {layer: device.query_plan(layer) for layer in reversed(layers)} == queries
    assert device.plan() == main


def test_zeroth_order_counts_node_gradients():
    model = chain()
    options = pmt.preset("default", queries=10, rule="node").to_core()
    work = zeroth_order_work(model.core, options, [1, 3])
    assert work.queries == 10 * (DEPTH + HEAD)  # the head is closed form
    assert work.reforwards == (CONV + DEPTH) + (CONV + DEPTH + HEAD)
    assert work.weight_gradients == DEPTH + HEAD
    assert work.forwards == 10
    assert work.forward_macs == CONV + DEPTH + HEAD + 10 * (DEPTH + HEAD)


@pytest.mark.parametrize("changes", [{"rule": "pooled"}, {"nodes": "free"}])
def test_pooled_and_free_nodes_cost_what_nodes_cost_on_a_host(changes):
    model = residual_network()
    layers = model.select_layers("all")
    node = pmt.preset("default", queries=10, rule="node", nodes="all")
    other = node.replace(**changes)
    works = [zeroth_order_work(model.core, one.to_core(), layers) for one in (node, other)]
    assert works[0] == works[1]


def test_pooled_nodes_take_four_bytes_a_channel():
    model = residual_network()
    layers = model.select_layers("B1,B2")

    def memory(**changes):
        options = pmt.preset("default", queries=8, **changes).to_core()
        counted = zeroth_order_memory(model, options, layers, batch=5)
        assert counted.sram == arena_bytes(model.core, options, layers, 5)
        return counted

    node, shares = memory(rule="node", nodes="all"), 4 * 16  # of 16 channels, or their signs
    assert abs(memory(rule="pooled").buffers - node.buffers - shares) < 16
    assert memory(rule="node", nodes="free") == node


def restarts(model: Model, block: str, batch: int, preset: str, rule: str) -> int:
    options = pmt.preset(preset, queries=10, rule=rule).to_core()
    layers = model.select_layers(block)
    device = _core.DeviceMemory(model.core, options, layers, batch)
    return device_restarts(model.core, options, layers, device, batch)


@pytest.mark.parametrize("rule", ["weight", "node"])
def test_queries_restart_with_their_stream(rule):
    stem, expand, depth = 13_824, 8_192, 9_216  # before the two layers of B2, in one stream
    again = 10 * ((stem + expand) + (stem + expand + depth))
    assert restarts(residual_network(), "B2,head", 1, "paper", rule) == again


@pytest.mark.parametrize("batch", [1, 5])
def test_a_pooled_gradient_runs_its_stream_twice(batch):
    model, up_to_depth, project = residual_network(), 13_824 + 8_192 + 9_216, 8_192
    assert restarts(model, "B2,head", batch, "paper", "pooled") == (
        restarts(model, "B2,head", batch, "paper", "node") + up_to_depth + up_to_depth + project
    )
    mcunet = pmt.load("cifar10_mcunet")  # no stream in B4
    assert restarts(mcunet, "B4", batch, "default", "pooled") == restarts(
        mcunet, "B4", batch, "default", "node"
    )


def test_gradients_in_groups_restart_for_each_image():
    mcunet = pmt.load("cifar10_mcunet")
    assert restarts(mcunet, "B4", 1, "paper", "node") == 0
    # 384, 384 and 576 channels, 84 at once: 5, 5 and 7 groups; the forwards up to the layers.
    up_to = (17_934_592, 19_267_840, 20_896_000)
    assert restarts(mcunet, "B4", 20, "paper", "node") == 4 * up_to[0] + 4 * up_to[1] + 6 * up_to[2]
    # Normalized steps, every group twice: for the norm of the whole, and to be applied.
    products = 589_824 + 589_824 + 884_736
    assert restarts(mcunet, "B4", 1, "default", "node") == products
    twice = 9 * up_to[0] + 9 * up_to[1] + 13 * up_to[2]
    assert restarts(mcunet, "B4", 20, "default", "node") == twice + products


@pytest.mark.parametrize(
    ("block", "exact", "printed"), [("paper14", 7857.9, 7857.5), ("B3", 1160.3, 1162.5)]
)
def test_mcunet_costs_what_the_paper_says(mcunet_path, block, exact, printed):
    model = pmt.load(mcunet_path, classes=10)
    head = 1600  # the paper counts the 42 convolutions, without the new head
    forward = model.macs - head
    assert forward == 22_453_504
    options = pmt.preset("paper", queries=50, rule="weight").to_core()
    layers = model.select_layers(block)
    work = zeroth_order_work(model.core, options, layers)
    suffixes = work.queries // 50 - head * len(layers)
    assert round((forward + 50 * suffixes) / 1e6, 1) == exact
    # The paper rounds the forward and the sum of the suffixes to one decimal first.
    assert round(forward / 1e6, 1) + 50 * round(suffixes / 1e6, 1) == pytest.approx(printed)


def test_mcunet_has_the_weights_and_the_arena_of_the_paper(mcunet_path):
    model = pmt.load(mcunet_path, classes=10)
    assert sum(layer.weights for layer in model.layers[:-1]) == 463_216
    assert sum(layer.biases for layer in model.layers[:-1]) == 6_008
    assert max(moment.total for moment in inference_moments(model)) == 160 * 1024


def test_the_published_schemes_take_the_memory_in_their_names(mcunet_path):
    model = pmt.load(mcunet_path, classes=10)
    memory = scheme_memory(model, published_scheme(model, "99KB"))
    assert (memory.weights, memory.biases) == (52_480, 4_792 * 4)
    assert (memory.inputs, memory.masks) == (12_352 + 160, 18_080)  # 160: the head's input
    assert memory.total == 102_240
    totals = {name: scheme_memory(model, published_scheme(model, name)).total for name in PUBLISHED}
    assert totals == {
        "49KB": 50_944,
        "74KB": 76_608,
        "99KB": 102_240,
        "124KB": 127_968,
        "148KB": 151_968,
    }


def test_the_memory_model_of_one_layer():
    model = chain()
    memory = layer_memory(model, LayerUpdate(1, 4, True))
    assert (memory.weights, memory.biases, memory.inputs, memory.masks) == (36, 32, 64, 16)
