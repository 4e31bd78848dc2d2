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
# # First steps
#
# For everyone who is new to pmt and knows Python.
#
# An int8 network was trained on clean images and now gets noisy ones. Here it learns from them
# without back-propagation and without float copies of its weights: the last layer is solved
# exactly, the layers before it use only forward passes. At the end it is exported as a firmware
# project that continues the training on a microcontroller.
#
# In a clone: `pip install ".[notebook]"`. It takes about half a minute.

# %%
# Installs what is missing, as in Colab; until an index has pmt, give pip the paths of its wheels.
from importlib.util import find_spec

from IPython import get_ipython

if find_spec("pmt") is None:
    get_ipython().run_line_magic("pip", "install --quiet poor-mans-training[plot]")

# %%
import matplotlib.pyplot as plt

import pmt
from pmt.plots import plot_confusions

# %% [markdown]
# ## The model
#
# The package includes a small depthwise-separable network for Fashion-MNIST. `pmt.load` also reads
# `.tflite` files with full integer quantization, and `.pmt`, the format that models are saved in.

# %%
model = pmt.load("fashion_mnist_dscnn")
model

# %%
print("layer         weights       MACs   output")
for layer in model.layers:
    print(f"{layer.name:<12}{layer.weights:>9,}{layer.macs:>11,}   {layer.output_shape}")

# %% [markdown]
# ## The images
#
# `pmt.corruptions` has the corruptions of CIFAR-10-C, with their published constants and a seed.
# Impulse noise turns pixels black or white, as a bad sensor does. Training and test images get
# different seeds, and so different noise.

# %%
clean = pmt.datasets.bundled("test")
train = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "impulse_noise", 5, seed=1)
test = pmt.corruptions.corrupt(clean, "impulse_noise", 5, seed=2)

figure, axes = plt.subplots(2, 8, figsize=(9, 3), layout="constrained")
for row, data in zip(axes, (clean, test), strict=True):
    predicted = model.logits(data.images[:8]).argmax(axis=1)
    for ax, image, guess, label in zip(row, data.images, predicted, data.labels, strict=False):
        ax.imshow(image[:, :, 0], cmap="gray")
        right = "" if guess == label else " (wrong)"
        ax.set_title(clean.class_names[guess] + right, fontsize="x-small")
        ax.set_axis_off()

# %% [markdown]
# Each title is the predicted class. Nearly all clean images are right; a third of the noisy ones
# are wrong:

# %%
before, mistakes = model.evaluate(test), model.confusion(test)
print(f"clean  {model.evaluate(clean)}")
print(f"noisy  {before}")

# %% [markdown]
# ## Adapting
#
# For every image and layer the trainer moves each output channel by two steps of its int8 grid,
# up or down at random, and runs the rest of the network. How the loss changes, over 8 such
# queries, estimates the gradient. The head's gradient needs no queries: it has a closed form.
#
# `layers` takes names of blocks and layers. Here these are the first block, where the noise
# enters, and the head.

# %%
trainer = pmt.ZOTrainer(layers="B1,head", epochs=2)
trainer.cost(model)

# %% tags=["varies"]
result = trainer.fit(model, train, valid=test, out="runs/first_steps", progress=False)
result

# %%
_ = result.plot(valid="test images")

# %% [markdown]
# `start` is the original model and `head` has the last layer solved exactly; the epochs of
# perturbed forwards follow. `changed` counts the changes of int8 weights in the steps of an epoch.
# Except for the seconds, all numbers are the same on every machine, with any number of
# threads. The run folder holds the options, one line of metrics per step, and the checkpoint.
# Calling `fit` again with the same folder resumes an unfinished run, bit for bit.
#
# The last line of the table says what else could help: alignment, which needs statistics of clean
# images ([notebook 09](09_past_the_paper.ipynb)).

# %%
after = model.evaluate(test)
print(f"noisy images: {before.accuracy:.1%} before, {after.accuracy:.1%} after")
print(f"clean images: {model.evaluate(clean).accuracy:.1%} after")
_ = plot_confusions(mistakes, model.confusion(test))

# %% [markdown]
# Half of the noisy images that were wrong are now right, most of them by training only the head.
# In return it is less accurate on clean images, which it no longer sees.

# %% [markdown]
# ## To the microcontroller
#
# The export is a folder with everything: the core in C++, the model, the training data of the
# next steps, and what the host computed from them. The board here is an emulated Cortex-M7.

# %%
from pmt.firmware.export import export

report = export(
    model,
    target="qemu-mps2-an500",
    out="fw",
    dataset=train,
    options=trainer.options,
    steps=2,
    batch=5,
    ram="256K",
    force=True,
)
print(report)

# %% [markdown]
# `make -C fw qemu` builds it, trains on the emulated board, and compares every activation, loss
# and weight with the host's: they are the same, to the last bit.
#
# Next: [which block to train](04_which_block.ipynb), [what helps most on new
# images](09_past_the_paper.ipynb), or [from notebook to board](10_from_notebook_to_board.ipynb).
