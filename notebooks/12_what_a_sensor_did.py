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
# # What a sensor did, and what undid it
#
# For users whose camera is not the one that their network was trained with.
#
# A sensor counts electrons, row by row, with pixels that differ or are stuck. Some of that no
# weight of a network can repair. A filter before it can, but a wrong filter does harm. pmt chooses
# it by forward passes, without a label, on a PC or on the board itself
# ([how](../docs/guides/input_stage.md)).
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
from pmt.datasets import Dataset
from pmt.plots import plot_sheet
from pmt.sheets import stage_sheet
from pmt_lab.camera import FAULTS

train, test = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")
plain = pmt.load("fashion_mnist_dscnn")
model = pmt.statistics(plain, train.images[:256])

# %% [markdown]
# ## The faults
#
# `pmt_lab.camera` simulates them where they arise: an image goes back to linear light, a pixel
# collects a Poisson number of electrons, read noise and the pixels' own gains follow, and then
# 8 bits of sRGB. None of them was looked at when the filters were made.

# %%
faults = ("low light", "row noise", "stuck pixels", "fixed pattern", "under-exposure", "motion")
figure, axes = plt.subplots(len(faults), 4, figsize=(3.6, 4), layout="constrained")
for row, name in zip(axes, faults, strict=True):
    for ax, image in zip(row, FAULTS[name].take(test.images[:4], seed=2), strict=True):
        ax.imshow(image[..., 0], cmap="gray", vmin=0, vmax=255)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")

# %% [markdown]
# ## What undid them
#
# 150 images of the faulty camera, no label: the network is aligned to them, as it is and behind
# the filters that its own predictions chose.


# %%
def seen(data, name, seed):
    return Dataset(FAULTS[name].take(data.images, seed), data.labels, data.class_names, name=name)


chosen, choices = {}, {}
print(f"{'':<16}{'before':>8}{'aligned':>9}{'behind filters':>16}  filters")
for name in faults:
    new, unseen = seen(train[256:406], name, 1), seen(test, name, 2)
    aligned, staged = model.copy(), model.copy()
    pmt.align(aligned, new.images)
    choices[name], chosen[name] = pmt.choose_input_stage(staged, new.images), staged
    scores = [one.evaluate(unseen).accuracy for one in (model, aligned, staged)]
    filters = str(choices[name].stage) if choices[name].changed else "none"
    print(f"{name:<16}{scores[0]:>8.1%}{scores[1]:>9.1%}{scores[2]:>16.1%}  {filters}")

# %% [markdown]
# Each row shows images as the camera gave them and, below, as the network reads them behind the
# filters that were chosen. `pmt show NEW --model ALIGNED.pmt` draws the same.

# %%
worst = "stuck pixels"
_ = plot_sheet(stage_sheet({worst: seen(test[:8], worst, 2)}, chosen[worst]))

# %% [markdown]
# ## How it was chosen
#
# Each candidate is a copy of the network, aligned to the images behind its filters. It predicts
# every image and two copies of it that are shifted by a pixel. The less these predictions
# disagree, the better is the filter: no label says so.

# %%
trials = [trial for trial in choices[worst].trials if trial.images == 100]
figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.barh([trial.text for trial in trials], [trial.disagreement for trial in trials], color="C0")
ax.invert_yaxis()
ax.set(xlabel="disagreement of views, nats less the entropy of the mean", title=worst)
least = np.argmin([trial.disagreement for trial in trials])
print(f"least on 100 images: {trials[least].text}; in the end: {choices[worst].stage}")

# %% [markdown]
# ## On a board
#
# `pmt export MODEL.pmt --learner --choose-input --target qemu-mps2-an500 --out fw` writes
# a program that runs the same search on the frames that its camera gives it, in slices, within
# 100 KB of RAM, and equals the PC to the byte ([learner](../docs/guides/learner.md#raw-frames)).
