"""Same seed, same bytes: whatever the threads, or the moment of an interruption."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import labels, pixels, residual_network

from pmt import _core
from pmt.train.options import preset

STEPS = 5
# Options that variants leave open, written out: no default decides which steps are tried.
BASE = {
    "rule": "by_dimension",
    "queries": 9,
    "mu_node": 4,
    "nodes": "all",
    "learning_rate": 0.5,
    "head_rate": 1.0,
    "gradient_norm_scaling": "none",
}
VARIANTS = [
    {"rule": "weight", "rounding": "nearest", "step": "gradient", "learning_rate": 3.0},
    {"rule": "weight", "rounding": "stochastic"},
    {"rule": "node", "rounding": "nearest"},
    {"rule": "node", "rounding": "stochastic", "baseline": "clean"},
    {"scope": "model_wise", "sharing": "batch", "rule": "weight"},
    {"generator": "xorshift32", "mu_weight": 1, "gradient_norm_scaling": "queries_and_samples"},
    {"train_bias": False},
    {"scope": "model_wise", "pairs": "antithetic", "queries": 10},
    {"pairs": "antithetic", "queries": 8, "generator": "xorshift32"},
    {"rule": "pooled"},
    {"rule": "node", "nodes": "free", "scope": "model_wise"},
    {"loss": "squared_error", "rule": "pooled"},
    {"loss": "binary_cross_entropy", "rule": "weight"},
    {"loss": "entropy", "diversity": 1.5},
    {
        "sharing": "batch",
        "separate_biases": True,
        "mu_bias": 50,
        "node_ratio": 2.0,
        "nodes": "free",
        "gradient_norm_scaling": "directions",
        "step": "gradient",
        "learning_rate": 30.0,
    },
]


def train(variant: dict, *, threads: int = 1, batch: int = 3) -> bytes:
    model = residual_network()
    options = preset("default", batch=batch, **{**BASE, **variant})
    trainer = _core.Trainer(
        model.core, options.to_core(), model.select_layers("all"), batch, threads
    )
    images, y = model.prepare(pixels(model, batch * STEPS)), labels(model, batch * STEPS)
    for step in range(STEPS):
        part = slice(step * batch, (step + 1) * batch)
        trainer.step(images[part], y[part], step, options.learning_rate)
    return model.image()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
def test_threads_do_not_change_a_byte(variant):
    reference = train(variant)
    assert reference != residual_network().image()
    for threads in (1, 2, 5):
        assert train(variant, threads=threads) == reference


def test_a_single_sample_is_split_over_threads_with_the_same_bytes():
    assert train({}, threads=5, batch=1) == train({}, threads=1, batch=1)


def test_seeds_matter():
    assert train({"seed": 1}) != train({"seed": 2})


def test_known_bytes():
    """Guards against a change of the arithmetic that every platform would share."""
    known = [_core.crc32(train(variant)) for variant in VARIANTS]
    assert known == KNOWN_CRCS


@pytest.mark.parametrize("kernels", _core.available_kernels())
def test_known_bytes_of_all_kernels(kernels):
    """In a process of its own, as PMT_ISA is read where a model is made."""
    code = "import test_same_bytes as t; t.test_known_bytes(); print(t._core.kernels())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PMT_ISA": kernels, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{kernels}\n", "")


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(2, 7).map(lambda half: 2 * half),
    width=st.integers(1, 40),
    classes=st.integers(2, 33),
    seed=st.integers(0, 1000),
    variant=st.sampled_from(VARIANTS),
)
def test_all_kernels_train_the_same_bytes(size, width, classes, seed, variant):
    images = {}
    for kernels in _core.available_kernels():
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PMT_ISA", kernels)
            model = residual_network(size=size, width=width, classes=classes, seed=seed)
            options = preset("default", batch=2, **{**BASE, "queries": 3, **variant})
            layers = model.select_layers("all")
            trainer = _core.Trainer(model.core, options.to_core(), layers, 2, 1)
            samples = model.prepare(pixels(model, 2))
            trainer.step(samples, labels(model, 2), 0, options.learning_rate)
            images[kernels] = (model.image(), model.core.logits(samples, 1).tobytes())
    assert len(set(images.values())) == 1, images.keys()


def test_unknown_kernels_are_refused(monkeypatch):
    available = ", ".join(_core.available_kernels())
    foreign = "avx2" if platform.machine() == "aarch64" else "neon_dot"
    for name, problem in (
        ("mmx", "which names no kernels of pmt"),
        (foreign, "which is not in this processor"),
    ):
        monkeypatch.setenv("PMT_ISA", name)
        expected = f"^PMT_ISA is '{name}', {problem}; it must be one of {available}$"
        with pytest.raises(ValueError, match=expected):
            residual_network()
    assert available.endswith("portable")


KNOWN_CRCS = [
    400267781,
    93616380,
    2298220121,
    3513753920,
    3865338055,
    1531329608,
    1056892778,
    871428991,
    997235303,
    2644094543,
    602925857,
    3648804150,
    788488630,
    2483171928,
    3080163719,
]


def test_philox_signs_are_the_counter_s_bits():
    signs = _core.signs("philox", 1, 2, 3, 4, 5, 0, 300)
    assert set(np.unique(signs)) == {-1, 1}
    again = _core.signs("philox", 1, 2, 3, 4, 5, 0, 100)
    np.testing.assert_array_equal(signs[:100], again)
    other = _core.signs("philox", 1, 2, 3, 4, 6, 0, 300)
    assert abs(int(signs.astype(int) @ other)) < 70  # 4 sigma of 300 independent signs
