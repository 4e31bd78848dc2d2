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
# # From notebook to board
#
# For engineers who build firmware.
#
# A training that runs in Python can run on a microcontroller, with the same bytes. This notebook
# exports a training as a firmware project, builds it, runs it on an emulated Cortex-M7 with the
# memory of a real board, and compares the results.
#
# In a clone: `pip install ".[notebook]"`; for the board also `make`, `arm-none-eabi-g++` and
# `qemu-system-arm` (Debian: `apt-get install make gcc-arm-none-eabi qemu-system-arm`). If one is
# missing, the notebook says so and skips that part. It takes less than a minute.

# %%
# Installs what is missing, as in Colab; until an index has pmt, give pip the paths of its wheels.
from importlib.util import find_spec

from IPython import get_ipython

if find_spec("pmt") is None:
    get_ipython().run_line_magic("pip", "install --quiet poor-mans-training[plot]")

# %%
import shutil
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt

import pmt
from pmt.firmware.export import export, read_card

model = pmt.load("fashion_mnist_dscnn")
noisy = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "impulse_noise", 5, seed=1)
unseen = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "impulse_noise", 5, seed=2)
print(model.evaluate(unseen))

# %% [markdown]
# ## Export
#
# The folder holds everything except the compiler: the core in C++, the model, an application, and
# `card.img` with the images and steps. The board is QEMU's, with the flash and RAM of an
# STM32F746G-DISCO: a program that does not fit 256 KB does not link, and access beyond them
# faults.

# %%
options = pmt.methods.trainer("pooled", layers="B1,head", epochs=1).options
task = dict(dataset=noisy, options=options, steps=8, batch=8, force=True)
report = export(model, target="qemu-mps2-an500", like="stm32f746g-disco", out="board", **task)
print(report)

# %%
parts = {**report.arena_parts, "stack": report.stack_bytes, "variables": report.variable_bytes}
figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(list(parts), [size / 1024 for size in parts.values()])
ax.invert_yaxis()
_ = ax.set_xlabel("RAM (KB), of the board's 256")

# %% [markdown]
# ## Train on the board
#
# `make qemu` builds the firmware, trains, and compares every activation, loss and weight with
# those that the host computed at the export.


# %%
def have(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        print(f"not run: {', '.join(missing)} not found")
    return not missing


def make(folder, goal):
    command = ["make", "--silent", f"--directory={folder}", goal]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    print("\n".join(line for line in done.stdout.splitlines() if line.startswith("verify")))


# %% tags=["varies"]
emulated = have("make", "arm-none-eabi-g++", "qemu-system-arm")
if emulated:
    make("board", "qemu")

# %% [markdown]
# ## The same library on this machine
#
# The target `generic` is a library for any processor with a C++ compiler. `make run` builds it
# for this one, with plain C++ kernels, and trains the same steps.

# %% tags=["varies"]
export(model, target="generic", out="library", **task)
local = have("make", "g++")
if local:
    make("library", "run")

# %% [markdown]
# ## Back to Python
#
# Both have written checkpoints to their cards, as to an SD card. `pmt.load` reads a card like any
# other model.

# %% tags=["varies"]
folders = [name for name, ran in (("board", emulated), ("library", local)) if ran]
trained = {name: pmt.load(Path(name) / "build" / "card.img") for name in folders}
for name, learned in trained.items():
    print(f"{name}: {read_card(Path(name) / 'build' / 'card.img').steps_done} steps done")
    print(f"{name}: {learned.evaluate(unseen)}")
if len(trained) == 2:
    same = trained["board"].image() == trained["library"].image()
    print(f"the two models have the same bytes: {same}")

# %% [markdown]
# Eight steps of eight images gain 14 points. The board's model and the library's are the same to
# the last byte, although one was computed with a Cortex-M7's DSP instructions and the other by
# this processor. So accuracies in a notebook are those of the device; only time and memory differ.
#
# On a real board use `make flash` and `make monitor` ([boards](../docs/guides/firmware.md)).
