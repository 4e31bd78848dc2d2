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
# # What a perturbation sees
#
# For researchers who know [the paper](https://arxiv.org/abs/2411.05873): its figures 4 and 5, and
# table 2.
#
# A query changes one layer slightly, at random, and runs the network forward. It returns a single
# number: by how much the loss changed. How much of the true gradient is in such numbers, layer by
# layer, and how can it be increased?
#
# The networks and images are those that come with the package. In a clone:
# `pip install ".[notebook,torch]" ./lab`; torch computes the exact gradients that the estimates are
# compared with. It takes about half a minute.

# %%
# Installs what is missing, as in Colab; until an index has pmt, give pip the paths of its wheels.
from importlib.util import find_spec

from IPython import get_ipython

if find_spec("pmt_lab") is None:
    get_ipython().run_line_magic(
        "pip", "install --quiet poor-mans-training[torch] poor-mans-training-lab[plot]"
    )

# %%
import math

import matplotlib.pyplot as plt

import pmt
from pmt_lab.plots import plot_cosines
from pmt_lab.reproduce.stored import stored
from pmt_lab.studies.gradient_quality import study_gradients

# %% [markdown]
# ## How many numbers are there to find?
#
# One can perturb the weights of a layer or its outputs, the nodes. A random direction in $d$
# dimensions has a cosine of about $1/\sqrt d$ with the gradient, and $Q$ directions one of about
# $\sqrt{Q/d}$. So the smaller of the two dimensions looks like the better choice. These are the
# 14 layers that the paper trains in MCUNet:

# %%
mcunet = pmt.load("cifar10_mcunet")
paper14 = [layer for layer in mcunet.layers if layer.index in mcunet.blocks["paper14"]]

figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
names = [layer.name.removesuffix(".pointwise1") for layer in paper14]
shapes = [(128, 128, 3), *(layer.output_shape for layer in mcunet.layers)]
sizes = dict(zip(mcunet.layers, map(math.prod, shapes), strict=False))
inputs = [sizes[layer] for layer in paper14]
outputs = [math.prod(layer.output_shape) for layer in paper14]
ax.semilogy(names, [layer.weights for layer in paper14], "o-", label="weights")
ax.semilogy(names, outputs, "s--", label="nodes: outputs")
ax.semilogy(names, inputs, "^:", label="inputs")
ax.set_ylabel("dimension")
ax.tick_params("x", rotation=45)
_ = ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))

# %% [markdown]
# Early layers have few weights and large outputs, late ones many weights and small outputs. By
# outputs, nodes are clearly fewer than weights from `b11` on. The paper prints its rule with
# outputs, too; but its "four layers, two with more nodes and two with more weights" exist only if
# nodes are counted at the input. So pmt's `paper` preset compares weights with inputs: it perturbs
# weights up to `b5` and nodes from `b6` on, in 8 of the 14 layers. The option
# `node_dimension="output"` uses the rule as printed.

# %% [markdown]
# ## How close do estimates come?
#
# The exact gradient of the int8 network, with rounding taken as the identity, comes from
# back-propagation. `study_gradients` compares estimates with it, here for the small bundled
# network, on 8 noisy images, with 64 queries for each image and layer. Each estimate is made three
# times, with other directions.

# %%
model = pmt.load("fashion_mnist_dscnn")
train = pmt.datasets.bundled("train")
noisy = pmt.corruptions.corrupt(train, "gaussian_noise", severity=5, seed=1)[:8]


def cosines(*estimators):
    return study_gradients(
        model, noisy, estimators=estimators, queries=[64], repeats=3, progress=False
    )


_, axes = plt.subplots(
    2, 1, figsize=(7, 4.6), sharex=True, height_ratios=(1, 2), layout="constrained"
)
_ = plot_cosines(cosines("weight+mu1+clean", "node+mu1+clean"), ax=axes)

# %% [markdown]
# That is the paper's setting: steps of one unit of the int8 grid (`mu1`), losses compared with the
# clean one (`clean`). Lines are measured, with one standard error; crosses are the values that
# theory predicts without rounding. Two things can be seen.
#
# - Nodes do better in `project3`, which has 8,192 weights and 3,136 nodes, and weights in the
#   first four layers, as the rule of dimensions says. `pointwise2` and `depthwise3`, which have
#   fewer weights than nodes and where nodes do better, are exceptions; in `expand3` and
#   `pointwise4`, which are large in both, neither does well. With nodes the head is exact, because
#   its gradient has a closed form.
# - Many cosines are lower than theory predicts. `conv1` should reach 0.64 with weight perturbation
#   (the cross), and has less than half of it.

# %% [markdown]
# ## The int8 grid hides small changes
#
# A weight moved by one unit changes an int8 output by less than one unit, and rounding decides
# whether the change is visible at all. A change of four units is easier to see. Also, the mean of
# the other queries can be a better baseline than the clean loss, since it removes what all
# perturbations have in common. Below, `mu4` means both together.

# %%
_, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
shown = cosines("weight+mu4", "node+mu4", "weight+mu1+clean", "node+mu1+clean")
_ = plot_cosines(shown, ax=ax)

# %% [markdown]
# The number of queries and their cost are the same as before. Weight perturbation gains most in
# `conv1`, node perturbation in `depthwise1` and `pointwise4`.

# %% [markdown]
# ## Fewer numbers to find
#
# The sum over a channel matters more to its weights than any one position. Pooled node
# perturbation moves all nodes of a channel by one sign, except those at a clamp. The dimension is
# then the number of channels: tens, not thousands. The default uses a step of two units, because a
# perturbation of a whole channel is easier to see.

# %%
_, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
_ = plot_cosines(cosines("weight+mu4", "node+mu4", "pooled+mu2"), ax=ax)

# %% [markdown]
# One sign per channel has one and a half to eight times the cosine of one sign per weight, in
# every layer except the first and the head. The price is a small bias: differences between
# positions are lost. pmt's default method uses this perturbation; [notebook
# 09](09_past_the_paper.ipynb) trains with it.

# %% [markdown]
# ## At the paper's scale
#
# MCUNet under severe Gaussian noise, drawn from [versioned results](../lab/pages/reproduction.md).
# First the cosines of all layers, the paper's figure 4, with its steps and baseline, and in the
# last panel one sign per channel as in the default. Layer-wise, each of the 42 layers gets as many
# queries as all layers together get model-wise:

# %%
cosine = stored("gradient-cosine")
print(cosine)
_ = cosine.plot()

# %% [markdown]
# Weights are better where they are fewer than nodes, as in the paper, one layer at a time or all
# at once. Nodes are better where they are fewer only if layers are perturbed one at a time, with
# 42 times the queries; all at once, their estimates contain nothing of the gradient, and the
# paper's zigzag does not appear.
#
# The paper's figure 5 compares both ways at equal cost, for weights, nodes and the mixture of
# both by dimension:

# %%
scopes = stored("scopes-cosine")
print(scopes)
_ = scopes.plot()

# %% [markdown]
# The paper finds layer-wise perturbation better for all three. Here weights do better all at once,
# and for nodes and the mixture the two do not differ with steps of one unit: at equal cost a layer
# gets few queries of its own, and the lines are near zero. With steps of four units the mixture
# does better layer-wise, as published; that is the only row that is reproduced, and it is not
# drawn. One sign per channel, with as many queries, finds something of the gradient in nearly all
# layers.
#
# Table 2 of the paper has formulas for the variance of such estimates:

# %%
variance = stored("variance-formulas")
print(variance)
_ = variance.plot()

# %% [markdown]
# For weights and steps of four units, measurement agrees within a quarter with the formula that is
# exact for a linear loss; with steps of one unit, rounding makes the variance up to five times as
# large. The printed formulas count the scatter between images without the dimension, and so fall
# short with more than one image. No formula covers nodes at a clamp, or steps that are lost in
# rounding.
#
# Next: [which scaling and estimator learns fastest](03_scaling_and_estimators.ipynb).
