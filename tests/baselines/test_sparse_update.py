"""Schemes of sparse back-propagation: channels, the knapsack, TinyTrain's choice."""

import itertools
import json

import numpy as np
import pytest
from networks import CONV, DEPTH, HEAD, chain, residual_network, smooth_network
from trained_weights import weight_masks

from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.baselines.sparse_update.channels import (
    Budgets,
    chosen_scheme,
    inspected_layers,
    largest_channels,
    layer_scores,
    select_scheme,
    top_channels,
)
from pmt.baselines.sparse_update.contribution import Option, best_choice, scheme_memory
from pmt.baselines.sparse_update.options import published_scheme


def with_weights(op: int, weights: np.ndarray):
    model = chain()
    model.core.set_parameters(op, weights.astype(np.int8), model.core.bias(op))
    return model


def test_of_equal_scores_the_first_channel_is_taken():
    assert top_channels([1, 3, 3, 2], 2) == (1, 2)
    assert top_channels([3, 1, 3, 3], 2) == (0, 2)
    assert top_channels([1, 2], 0) == ()


def test_channels_of_the_largest_weights():
    conv = np.ones((8, 3, 3, 2))
    conv[5, 1, 1, 1] = -50
    assert largest_channels(with_weights(0, conv), 0, 1) == (1,)
    depth = np.ones((3, 3, 8))
    depth[2, 0, 6], depth[0, 0, 3] = -40, 30
    assert largest_channels(with_weights(1, depth), 1, 2) == (3, 6)
    head = np.ones((4, 8))
    head[:, 2] = 9
    assert largest_channels(with_weights(3, head), 3, 1) == (2,)


def test_masks_cover_the_chosen_input_channels():
    model = chain()
    scheme = UpdateScheme(
        (LayerUpdate(0, 1, True, (1,)), LayerUpdate(1, 2, False, (0, 7)), LayerUpdate(3, 0, True))
    )
    masks = weight_masks(model, scheme)
    conv, depth = masks[0].reshape(8, 3, 3, 2), masks[1].reshape(3, 3, 8)
    assert conv[..., 1].all()
    assert not conv[..., 0].any()
    assert depth[..., [0, 7]].all()
    assert depth.sum() == 18
    assert not masks[3].any()


def test_a_scheme_survives_its_file(tmp_path):
    model = residual_network()
    scheme = chosen_scheme(model, UpdateScheme.whole([2, 5], model))
    scheme.save(tmp_path / "scheme.json", model)
    assert UpdateScheme.load(tmp_path / "scheme.json", model) == scheme
    figures = json.loads((tmp_path / "scheme.json").read_text())
    assert [layer["name"] for layer in figures["layers"]] == ["depth", "down"]
    with pytest.raises(ValueError, match=r"scheme.json: .*'depth' is not a layer of this model"):
        UpdateScheme.load(tmp_path / "scheme.json", smooth_network())
    for damage in ("[]", "{", '{"format": "pmt update scheme 1", "layers": [{}]}'):
        (tmp_path / "scheme.json").write_text(damage)
        with pytest.raises(ValueError, match=r"scheme.json: "):
            UpdateScheme.load(tmp_path / "scheme.json", model)


def test_published_schemes_are_refused_elsewhere():
    with pytest.raises(ValueError, match="42 convolutions, this model has 2"):
        published_scheme(chain(), "99KB")
    with pytest.raises(ValueError, match="scheme='1KB' is unknown; did you mean '148KB'"):
        published_scheme(chain(), "1KB")


def exhaustive(bias_gains, bias_memories, options, budget):
    """The best gain by trying everything."""
    best = -np.inf
    count = len(options)
    for k in range(count + 1):
        trainable = [[None, *options[i]] if i >= count - k else [None] for i in range(count)]
        for picks in itertools.product(*trainable):
            memory = bias_memories[k] + sum(p.memory for p in picks if p)
            if memory <= budget:
                best = max(best, bias_gains[k] + sum(p.gain for p in picks if p))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_the_knapsack_finds_the_best(seed):
    rng = np.random.default_rng(seed)
    count = 4
    bias_memories = [0, *np.cumsum(rng.integers(1, 9, count)).tolist()]
    bias_gains = rng.normal(0, 0.02, count + 1).tolist()
    options = [
        [Option(r, float(rng.normal(0.01, 0.02)), int(rng.integers(1, 30))) for r in (0.25, 0.5, 1)]
        for _ in range(count)
    ]
    for budget in (0, 10, 25, 60):
        choice = best_choice(bias_gains, bias_memories, options, budget)
        assert choice.gain == pytest.approx(exhaustive(bias_gains, bias_memories, options, budget))
        chosen = [o for i in range(count) for o in options[i] if o.ratio == choice.ratios[i]]
        assert choice.memory == bias_memories[choice.biases] + sum(o.memory for o in chosen)
        assert choice.memory <= budget
        assert choice.gain == pytest.approx(bias_gains[choice.biases] + sum(o.gain for o in chosen))


def test_the_knapsack_trains_weights_only_where_biases_are():
    options = [[Option(1.0, 9.0, 1)], [Option(1.0, 1.0, 1)]]
    choice = best_choice([0.0, 0.1, -20.0], [0, 1, 2], options, 100)
    assert (choice.biases, choice.ratios, choice.gain) == (1, (0.0, 1.0), pytest.approx(1.1))
    unmeasured = best_choice([0.0, np.nan, 0.1], [0, 1, 2], options, 100)
    assert unmeasured.biases == 2


def test_large_budgets_are_counted_in_coarser_units_but_hold():
    options = [[Option(1.0, 1.0, 3_000_001)], [Option(1.0, 1.0, 3_000_000)]]
    choice = best_choice([0.0, 0.0, 0.0], [0, 0, 0], options, 6_000_000)
    assert choice.memory <= 6_000_000
    assert choice.gain == 1.0


def test_layers_are_scored_by_potential_weights_and_macs():
    potentials = {0: np.array([3.0, 1.0]), 1: np.full(8, 0.5)}
    scores = layer_scores(chain(), potentials)
    # Weights 144 and 72, multiply-accumulates 2304 and 1152.
    assert scores == {0: 4.0, 1: pytest.approx(4.0 / (0.5 * 0.5))}


def test_tinytrain_takes_the_best_layers_that_fit():
    model = chain()
    potentials = {0: np.array([3.0, 1.0]), 1: np.arange(8.0)}
    everything = select_scheme(model, potentials, Budgets(10**6, 10**9))
    assert [(u.op, u.channels) for u in everything.layers] == [(0, 2), (1, 8), (3, 8)]
    # The depthwise layer first (score 28 / 0.25): with the head's 8 bytes it may take 176 more, and
    # takes 36 + 32 + 64 + 16 with half its channels; all would be 72 + 32 + 128 + 16.
    some = select_scheme(model, potentials, Budgets(8 + 176, 10**9))
    assert [(u.op, u.channels) for u in some.layers] == [(1, 4), (3, 8)]
    assert some.layers[0].chosen == (4, 5, 6, 7)
    assert scheme_memory(model, some).total == 8 + 148
    # By multiply-accumulates: the head takes 32 + 32, a quarter of the layer 1152 / 4.
    few = select_scheme(model, potentials, Budgets(10**6, 2 * HEAD + DEPTH // 4))
    assert [(u.op, u.channels) for u in few.layers] == [(1, 2), (3, 8)]
    # The first layer costs a passage through the second as well.
    first = select_scheme(model, {0: potentials[0]}, Budgets(10**6, 2 * HEAD + DEPTH + CONV // 2))
    assert first.layers[0] == LayerUpdate(0, 1, True, (0,))
    with pytest.raises(ValueError, match="no layer fits 3 bytes"):
        select_scheme(model, potentials, Budgets(3, 10**9))


def test_layers_that_are_passed_keep_their_masks():
    model = chain()
    memory = scheme_memory(model, UpdateScheme((LayerUpdate(0, 1, True, (0,)),)))
    assert memory.masks == 16 + 16


def test_the_last_layers_before_the_head_are_inspected():
    assert inspected_layers(residual_network(), 2) == [3, 5]
    assert inspected_layers(residual_network(), 99) == [0, 1, 2, 3, 5]


def test_every_name_of_the_package_is_there():
    from pmt.baselines import sparse_update

    assert all(getattr(sparse_update, name) for name in sparse_update.__all__)
