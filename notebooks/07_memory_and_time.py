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
# # Memory, multiply-accumulates, instructions, latency
#
# For engineers who choose a board; figure 1b and tables 3, 8 and 9 of [the
# paper](https://arxiv.org/abs/2411.05873).
#
# Back-propagation keeps activations for the backward pass. Perturbed forwards keep nothing, but
# there are many of them. How much is that in bytes and in time, on the network and the boards of
# the paper?
#
# Everything here is counted, not trained: the numbers are for the full-size MCUNet (128x128
# images, 22.5 million multiply-accumulates), which comes with the package. In a clone: `pip
# install ".[notebook]" ./lab`; the instructions also need `arm-none-eabi-g++` and
# `qemu-system-arm`. It takes less than half a minute.

# %%
# Installs what is missing, as in Colab; until an index has pmt, give pip the paths of its wheels.
from importlib.util import find_spec

from IPython import get_ipython

if find_spec("pmt_lab") is None:
    get_ipython().run_line_magic("pip", "install --quiet poor-mans-training-lab[plot]")

# %%
import shutil

import pmt
from pmt.firmware.board.profile import profile_instructions, profile_methods
from pmt.plots import plot_memory, plot_step_memory
from pmt.profiling.step_memory import step_memory
from pmt_lab.reproduce.stored import stored

model = pmt.load("cifar10_mcunet")

# %% [markdown]
# ## Memory
#
# One image at a time, the 14 layers of the paper's full training, 50 queries for each image and
# layer. The bars of `bp_...` and `mcutrain` are lower bounds: only what must be alive at once,
# without working memory. The bars of perturbation are exact, to the byte: `pmt export` reserves as
# much.

# %%
full = profile_methods(
    model,
    "paper",
    against=("pooled", "bp_fp32", "bp_int8", "bp_bias_only", "mcutrain"),
    layers="paper14",
    batch=1,
    queries=50,
    target="stm32h7b3i-dk",
)
_ = plot_memory(full.profiles)

# %% [markdown]
# Perturbation takes less than the trained weights and the activations of an inference together,
# because the first layers run through line buffers, and because queries of all layers share the
# same bytes. Back-propagation in int8 takes three times as much, and most of it is float
# gradients of activations.
#
# Where does each of these lie, from the first op to the last? Ops run from left to right, bytes of
# the arena go from bottom to top, and a byte is used again and again; white is free at that time:

# %%
_ = plot_step_memory(step_memory(model, "paper", layers="paper14", batch=1, queries=50))

# %% [markdown]
# Training only block 3 is the paper's sparse training:

# %%
sparse = profile_methods(
    model,
    "paper",
    against=("pooled", "bp_fp32", "bp_int8", "mcutrain"),
    layers="B3",
    batch=1,
    queries=50,
    target="stm32f746g-disco",
)
_ = plot_memory(sparse.profiles)

# %% [markdown]
# In late layers back-propagation has little to keep, and the two are close. The difference comes
# from the early layers. `mcutrain` is a published choice of layers and channels, the same in both
# pictures.
#
# ## Does it fit?
#
# All RAM that the firmware takes, including stack and variables, on the two boards of the paper.
# Back-propagation has no firmware, so there is only a lower bound.

# %%
for found in (full, sparse):
    board = found.board.board
    print(f"{board.name}: {board.ram.bytes // 1024:,} KB of RAM")
    for row in found.board.methods:
        kilobytes = (row.analytic if row.planned is None else row.planned.ram) / 1024
        bound, fits = ("at least ", "may fit") if row.is_bound else ("", "fits")
        verdict = fits if row.fits else "does not fit"
        print(f"  {row.method:<13} {bound + f'{kilobytes:,.1f}':>16} KB  {verdict}")

# %% [markdown]
# ## Multiply-accumulates
#
# The price is work. A step of one image:

# %%
print("million multiply-accumulates     14 layers    block 3")
for one in full.profiles:
    twin = next((p for p in sparse.profiles if p.method == one.method), None)
    short = "" if twin is None else f"{twin.work.macs / 1e6:>11,.1f}"
    print(f"{one.method:<29}{one.work.macs / 1e6:>13,.1f}{short}")

# %% [markdown]
# Fifty queries of 14 layers are the work of 360 forwards, 150 times what back-propagation takes
# for an exact gradient; for block 3 it is 37 times. That is the tradeoff: a third of the memory
# for 14 layers, two thirds for block 3, and many times the work.
#
# ## Instructions
#
# Compiled for a Cortex-M7 and run in QEMU, which counts instructions exactly. They are not cycles:
# a Cortex-M7 issues one or two instructions per cycle, and waits for memory. The count depends on
# the compiler's version.

# %% tags=["varies"]
if shutil.which("arm-none-eabi-g++") and shutil.which("qemu-system-arm"):
    profile = profile_instructions(model, kernels=("arm_dsp", "portable"))
    for count in profile.counts:
        seconds = profile.latency.seconds(count.forward)
        print(f"{count.kernels:<9}{count.forward / 1e6:>7.1f} million a forward, {seconds:.2f} s")
    print("seconds:", profile.latency.factors())
else:
    print("arm-none-eabi-g++ or qemu-system-arm is missing: no instructions are counted")

# %% [markdown]
# The seconds are projected with one instruction per cycle. No board has been measured.
#
# Where do they go? By kind of layer, the kernels that use the processor's DSP instructions:

# %% tags=["varies"]
if shutil.which("arm-none-eabi-g++") and shutil.which("qemu-system-arm"):
    kinds = dict.fromkeys(op.kind for op in profile.counts[0].layers)
    for kind in kinds:
        own = [op for op in profile.counts[0].layers if op.kind == kind]
        taken, macs = sum(op.instructions for op in own), sum(op.macs for op in own)
        print(f"{kind:<17}{taken / 1e6:>6.1f} million for {macs / 1e6:.1f} million MACs")

# %% [markdown]
# ## At the paper's scale
#
# The paper's figures, drawn from [versioned results](../lab/pages/reproduction.md). Memory by
# method (figure 1b); black diamonds are the paper's numbers, dotted lines the SRAM of its boards:

# %%
overview = stored("memory-overview")
print(overview)
_ = overview.plot()

# %% [markdown]
# Memory beyond parameters and a forward, by the paper's formulas and as pmt plans it (table 3).
# Planned steps draw the signs again instead of keeping them, and let the queries of all layers
# share bytes. So they need less than most formulas say. Weight perturbation needs a little more
# than its leanest one for one image, since the sums of its gradient are counted here, and much more
# for eight, whose losses are all kept:

# %%
formulas = stored("memory-formulas")
print(formulas)
_ = formulas.plot()

# %% [markdown]
# The two tables of hardware costs, for the runs finished so far. Latencies are projected from
# counted instructions: no board was measured, and the paper's other kernels were not built. A step
# of 14 layers would take 44 seconds, and the paper's 50 epochs of 1,000 images 25 days, three
# fifths of the time that it prints. The second table also has accuracies, and the plot after it
# shows the losses over the work. As printed, image by image, the paper's method got worse from the
# first epoch on; in batches, by the released settings, it nears back-propagation.

# %%
whole = stored("full-model-cost")
print(whole)
_ = whole.plot()
print(whole.table())

# %%
block3 = stored("sparse-cost")
print(block3)
_ = block3.plot()
_ = block3.plot_losses("gaussian_noise")
print(block3.table())

# %% [markdown]
# Next: [export a training and run it on an emulated board](10_from_notebook_to_board.ipynb).
