# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Other methods without back-propagation
#
# For researchers who want to compare methods; tables 5 and 6 of [the
# paper](https://arxiv.org/abs/2411.05873).
#
# MeZO perturbs all weights at once along one direction, and takes very many steps. DeepZero
# perturbs one weight at a time: its gradient is good, and a step takes a query for each weight.
# The paper's method is in between. Which of them learns most from the same work?
#
# The network and images are those that come with the package. In a clone:
# `pip install ".[notebook]" ./lab`. It takes about half a minute.

# %%
# Installs what is missing, as in Colab; until an index has pmt, give pip the paths of its wheels.
from importlib.util import find_spec

from IPython import get_ipython

if find_spec("pmt_lab") is None:
    get_ipython().run_line_magic("pip", "install --quiet poor-mans-training-lab[plot]")

# %%
import matplotlib.pyplot as plt
import numpy as np

import pmt
from pmt.protocol import wilson_interval
from pmt_lab.reproduce.stored import stored

model = pmt.load("fashion_mnist_dscnn")
noisy = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "gaussian_noise", 5, seed=1)
unseen = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "gaussian_noise", 5, seed=2)

# %% [markdown]
# ## The same layers, the same work
#
# All train the first block under severe noise, 800 weights, for 100 billion multiply-accumulates
# and without any preparation. MeZO, DeepZero and the paper's method get three learning rates each;
# the one with the lowest training loss at the end counts. DeepZero takes few images per step,
# because otherwise it would take only a handful of steps.

# %%
work = dict(layers="B1", macs=100 * 10**9)


def train(method, **options):
    """Return the losses of all steps, the number of perturbed forwards, and the trained model."""
    losses = []
    trainer = pmt.methods.trainer(method, **work, **options)
    result = trainer.fit(model.copy(), noisy, progress=lambda _, step: losses.append(step["loss"]))
    return losses, result.epochs[-1]["forwards"], result.model


def best(method, rates, **options):
    runs = [train(method, learning_rate=rate, **options) for rate in rates]
    return min(runs, key=lambda run: sum(run[0][-5:]))


found = {
    "MeZO": best("mezo", (3e-5, 1e-4, 3e-4)),
    "DeepZero": best("deepzero", (0.25, 0.5, 1.0), batch=10),
    "DeepZero, 90 % sparse": best("deepzero_sparse", (0.25, 0.5, 1.0), batch=10),
    "paper": best("paper", (0.003, 0.01, 0.03), queries=25, batch=25),
    "pooled": train("pooled"),
}

# %%
print(f"{'':<23}{'steps':>7}{'forwards a batch':>17}{'accuracy':>10}")
print(f"{'before':<23}{'':>24}{model.evaluate(unseen).accuracy:>10.1%}")
for name, (losses, forwards, learned) in found.items():
    accuracy = learned.evaluate(unseen).accuracy
    print(f"{name:<23}{len(losses):>7,}{forwards // len(losses):>17,}{accuracy:>10.1%}")

# %%
names = list(found)
right = [round(found[name][2].evaluate(unseen).accuracy * len(unseen)) for name in names]
accuracies = [100 * count / len(unseen) for count in right]
ends = [wilson_interval(count, len(unseen)) for count in right]
reach = [(y - 100 * low, 100 * high - y) for y, (low, high) in zip(accuracies, ends, strict=True)]
_, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
ax.barh(names, accuracies, xerr=np.transpose(reach), capsize=3)
ax.axvline(100 * model.evaluate(unseen).accuracy, color="black", linestyle="--", label="before")
ax.invert_yaxis()
ax.set_xlabel("accuracy on noisy test images (%), with 95 % interval")
_ = ax.legend(fontsize="small", loc="lower right", bbox_to_anchor=(1, 1))

# %% [markdown]
# A block of 800 weights is easy for all of them: with so few dimensions one direction per step
# carries some information, and the budget allows a query for each weight a few times. A network of
# MCUNet's size is harder.

# %% [markdown]
# ## At the paper's scale
#
# MCUNet under severe Gaussian noise, drawn from [versioned results](../lab/pages/reproduction.md).
# MeZO and DeepZero have the best of four learning rates and a twentieth of the paper's
# multiply-accumulates: 2 % of the published forwards of MeZO, and about 1 % or less of those of
# DeepZero, which needs one query per weight. The paper's method is the first of the three seeds in
# notebook 05, on block 2 and the head, with all forwards at the best of four rates, 0.001.
# Forwards per step are those of one image, as in the paper. First MeZO and DeepZero on all layers:

# %%
all_layers = stored("bp-free-methods")
print(all_layers)
print(all_layers.table())
_ = all_layers.plot()

# %% [markdown]
# MeZO's accuracy is near the published one; both are near the accuracy without adaptation. Then
# block 2 for all methods, which `paper` trains with the head:

# %%
same_layers = stored("bp-free-methods-same-layers")
print(same_layers)
print(same_layers.table())
_ = same_layers.plot()

# %% [markdown]
# On one block MeZO learns: it reaches its published accuracy, and at the same work its loss is
# below that of the paper's method. DeepZero takes five steps of ten
# images in this budget and gets worse, or 57 with a tenth of the coordinates and hardly moves;
# both revert to the original model, which is what is tested. The best rates of MeZO and of
# DeepZero with all coordinates are at the edge of those tried.
#
# Next: [what training costs on a board](07_memory_and_time.ipynb).
