"""Measurements of lab/benchmarks/speed_tables.py: a function for each file of results/speed.

Host figures come from commands, run one after the other, whose JSON is cut down to what the tables
of lab/pages/performance.md show. Instructions of a Cortex-M7 are counted by QEMU.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pmt
from pmt import _core
from pmt._util.origin import origin
from pmt.datasets import Dataset
from pmt.firmware.board.instructions import KERNELS, Instructions, count_instructions
from pmt.firmware.export import export
from pmt.firmware.export.report import project_latency
from pmt.firmware.export.target import find_target
from pmt_lab.benchmark.forward import group_of
from pmt_lab.benchmark.timing import processor

ROOT = Path(__file__).parents[2]
MODELS = {"MCUNet": "mcunet-5fps.pkl", "ResNet-8": "resnet8_cifar10_int8.tflite"}
PLOT = ROOT / "lab" / "pages" / "performance_mcunet.png"
ONEDNN_VERSION = Path("/usr/include/oneapi/dnnl/dnnl_version.h")
# Other programs get the instructions that pmt has, as far as they can be told.
ENVIRONMENT = {
    "avx512_vnni": {},
    "avx2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}
# ONNX Runtime and LiteRT cannot be told.
AGAINST = {"avx512_vnni": "onnxruntime,litert,torch", "avx2": "torch"}
FORWARDS = {("MCUNet", 1, 1), ("MCUNet", 100, 1), ("MCUNet", 100, 2)} | {
    ("ResNet-8", 1, 1),
    ("ResNet-8", 100, 1),
}
REPEAT = 21
STEPS = {"B2": "by_dimension,weight", "paper14": "by_dimension"}
# Longer steps are measured less often, and on one thread.
STEP_REPEATS = {("avx512_vnni", "B2"): 7}
STEP_THREADS = {"avx512_vnni": "1,2", "avx2": "1"}
# Layers, method, and words of the table.
COUNTED_STEPS = (
    ("all", "paper", "all 43"),
    ("paper14", "paper", "`paper14`"),
    ("B1", "paper", "B1"),
    ("B2", "paper", "B2"),
    ("B3", "paper", "B3"),
    ("B2", "default", "B2, one sign per channel"),
    ("paper14", "default", "`paper14`, one sign per channel"),
)
# Models, layers, images; counted where there is one image.
ESTIMATED_STEPS = (
    ("cifar10_mcunet", "B1", 1),
    ("cifar10_mcunet", "B2", 1),
    ("cifar10_mcunet", "B3", 1),
    ("cifar10_mcunet", "B3", 4),
    ("cifar10_small", "B1", 1),
    ("cifar10_small", "B2", 1),
    ("fashion_mnist_dscnn", "all", 1),
)


def onednn(models: Path, isa: str) -> dict[str, Any]:
    """Convolutions against oneDNN's, by inner loop; oneDNN may use the same instructions."""
    found, kept = {}, {}
    for name, file in MODELS.items():
        program = str(ROOT / "lab" / "benchmarks" / "against_onednn.py")
        figures = command(isa, program, str(models / file), "--repeat", str(REPEAT))
        found[name] = convolution_groups(figures["layers"])
        kept = machine(figures["machine"], isa)
    version = re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", ONEDNN_VERSION.read_text())
    kept |= {"threads": 1, "repeat": REPEAT, "onednn": ".".join(version)}
    return {**kept, "environment": ENVIRONMENT[isa], "models": found}


def convolution_groups(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums of each inner loop's layers, and of all; ``wrong`` is the largest share of a layer."""
    names = [*dict.fromkeys(layer["group"] for layer in layers), "all convolutions"]
    return [
        {
            "layers": name,
            "macs": sum(x["macs"] for x in members),
            **{f"{key}_us": summed(members, key) for key in ("onednn", "pmt")},
            "wrong": max(x["wrong"] for x in members),
            "kernels": sorted({x["implementation"] for x in members}),
        }
        for name in names
        for members in [[x for x in layers if name in (x["group"], "all convolutions")]]
    ]


def summed(members: list[dict[str, Any]], key: str) -> dict[str, float]:
    """Add up microseconds, by number of images."""
    return {count: sum(x[key][count] for x in members) for count in members[0][key]}


def engines(models: Path, isa: str) -> dict[str, Any]:
    """Whole networks in other engines."""
    found: dict[str, Any] = {"forwards": [], "agreement": []}
    kept = {}
    for name, file in MODELS.items():
        words = ["--threads", "1,2", "--steps", "none", "--against", AGAINST[isa]]
        words += ["--repeat", str(REPEAT)]
        figures = bench(isa, str(models / file), *words)
        kept = machine(figures["machine"], isa)
        for one in figures["engines"]:
            if (name, one["images"], one["threads"]) in FORWARDS:
                keys = ("engine", "images", "threads", "microseconds", "ratio")
                found["forwards"].append({"model": name, **{key: one[key] for key in keys}})
        found["agreement"] += [{"model": name, **one} for one in figures["agreement"]]
    return {**kept, "repeat": REPEAT, "environment": ENVIRONMENT[isa], **found}


def layers(models: Path, isa: str) -> dict[str, Any]:
    """MCUNet's layers by inner loop, 100 images on one thread; the picture, with VNNI."""
    plot = ("--plot", str(PLOT)) if isa == "avx512_vnni" else ()
    words = ("--images", "100", "--threads", "1", "--steps", "none", "--repeat", str(REPEAT))
    figures = bench(isa, str(models / MODELS["MCUNet"]), *words, *plot)
    names = list(dict.fromkeys(map(layer_group, figures["layers"])))
    groups = []
    for name in names:
        members = [op for op in figures["layers"] if layer_group(op) == name]
        macs, microseconds = sum(op["macs"] for op in members), summed(members, "microseconds")
        groups.append({"layers": name, "macs": macs, "us": microseconds["100"]})
    (forward,) = figures["forward"]
    kept = {**machine(figures["machine"], isa), "threads": 1, "images": 100, "repeat": REPEAT}
    return {**kept, "forward_us": forward["microseconds"], "groups": groups}


def layer_group(op: dict[str, Any]) -> str:
    """Return the inner loop; pointwise layers by input channels, too."""
    if op["group"] != "pointwise":
        return op["group"]
    channels = int(op["shape"].split(" > ")[0].split("x")[2])
    names = {24: "up to 24 input channels", 95: "25 to 95", 1 << 30: "96 and more"}
    return f"pointwise, {next(name for most, name in names.items() if channels <= most)}"


def steps(models: Path, isa: str) -> dict[str, Any]:
    """Training steps of MCUNet with a head of 10 classes: 100 images, 100 queries."""
    kept, rows = {}, []
    for chosen, rules in STEPS.items():
        repeat = STEP_REPEATS.get((isa, chosen), 3)
        words = ["--classes", "10", "--layers", chosen, "--steps", rules, "--batch", "100"]
        words += ["--queries", "100", "--images", "100", "--threads", STEP_THREADS[isa]]
        words += ["--repeat", str(repeat)]
        file = str(models / MODELS["MCUNet"])
        figures = bench(isa, file, *words)
        kept = machine(figures["machine"], isa)
        for row in figures["steps"]:
            row |= {"repeat": repeat, "arena_bytes": arena(file, chosen, row)}
            rows.append({key: value for key, value in row.items() if key != "forwards"})
    return {**kept, "classes": 10, "rows": rows}


def arena(file: str, chosen: str, row: dict[str, Any]) -> int:
    """Return the bytes that a trainer takes for a step."""
    model = pmt.load(file, classes=10)
    options = pmt.TrainingOptions(queries=row["queries"], batch=row["batch"], rule=row["rule"])
    taken = model.select_layers(chosen)
    trainer = _core.Trainer(model.core, options.to_core(), taken, row["batch"], row["threads"])
    return trainer.arena_bytes


def cortex_forward(models: Path) -> dict[str, Any]:
    """Instructions of a forward of MCUNet with its 1,000 classes, by inner loop and kernels."""
    model = pmt.load(models / MODELS["MCUNet"])
    counts = {count.kernels: count for count in count_instructions(model, kernels=KERNELS)}
    tensors, groups = model.core.tensors(), {}
    for i, op in enumerate(model.core.ops()):
        source = tensors[op["inputs"][0]]["channels"]
        name = group_of(op["kind"], op["kernel"], source) if op["macs"] else "adds and mean"
        name = "classifier" if op["name"] == "classifier" else name
        row = groups.setdefault(name, {"layers": name, "macs": 0, **dict.fromkeys(KERNELS, 0)})
        row["macs"] += op["macs"]
        for kernels, count in counts.items():
            row[kernels] += count.ops[i].instructions
    latency = project_latency(find_target("stm32f746g-disco"))
    projected = {name: 1e3 * latency.seconds(count.forward) for name, count in counts.items()}
    kept = {"compiler": compiler(), "groups": list(groups.values())}
    return {**kept, "clock_mhz": latency.clock_mhz, "projected_ms": projected}


def cortex_steps(models: Path) -> dict[str, Any]:
    """Instructions of a training step of one image of `cifar10_mcunet`, 10 queries."""
    model = pmt.load("cifar10_mcunet")
    rows = []
    for chosen, method, words in COUNTED_STEPS:
        options = pmt.preset(method, layers=chosen, queries=10)
        (count,) = count_instructions(model, options=options)
        rows.append({"layers": words, "method": method, **step_counts(count)})
    return {"compiler": compiler(), "model": "cifar10_mcunet", "queries": 10, "rows": rows}


def step_counts(count: Instructions) -> dict[str, int]:
    """Return the step, its forwards, as many on whole activations, and one of the step's own."""
    return {
        "step": count.step_total,
        "forwards": count.step_forwards,
        "whole_forwards": count.whole_forwards,
        "one_forward": count.main_pass,
    }


def cortex_of_a_mac(models: Path) -> dict[str, Any]:
    """Instructions a multiply-accumulate of those layers that the estimate is from."""
    found: dict[str, dict[str, float]] = {kernels: {} for kernels in KERNELS}
    for name, kinds in (
        ("cifar10_mcunet", ("conv2d", "depthwise_conv2d")),
        ("fashion_mnist_dscnn", ("fully_connected",)),
    ):
        for count in count_instructions(pmt.load(name), kernels=KERNELS):
            for kind in kinds:
                ops = [op for op in count.ops if op.kind == kind]
                taken = sum(op.instructions for op in ops) / sum(op.macs for op in ops)
                found[count.kernels][kind] = taken
    return {"compiler": compiler(), "counted": found}


def cortex_estimates(models: Path) -> dict[str, Any]:
    """Instructions of a step, as an export estimates them, and counted where it has one image."""
    rows = []
    for name, chosen, batch in ESTIMATED_STEPS:
        model = pmt.load(name)
        names = {"layers": chosen, "rule": "by_dimension", "preparation": "head"}
        options = pmt.preset("default", **names, batch=batch, queries=10)
        row = {"model": name, "layers": chosen, "images": batch, "counted": None}
        if batch == 1:
            (count,) = count_instructions(model, options=options)
            row["counted"] = count.step_total
        rows.append({**row, "estimated": estimate(model, options)})
    return {"compiler": compiler(), "queries": 10, "rows": rows}


def estimate(model: pmt.Model, options: pmt.TrainingOptions) -> int:
    """Return the instructions of one step that `pmt export` prints."""
    count = options.batch
    pixels = np.random.default_rng(0).integers(0, 256, (count, *model.input_shape), np.uint8)
    classes = tuple(map(str, range(model.classes)))
    images = Dataset(pixels, np.arange(count) % model.classes, classes, "random")
    with tempfile.TemporaryDirectory() as folder:
        report = export(
            model,
            target="stm32f746g-disco",
            out=Path(folder) / "firmware",
            dataset=images,
            options=options,
            steps=1,
            inferences=0,
        )
    return report.instructions


def bench(isa: str, *words: str) -> dict[str, Any]:
    """Return the figures of `pmt-lab bench`."""
    return command(isa, "-m", "pmt", "bench", *words)


def command(isa: str, *words: str) -> dict[str, Any]:
    """Run Python with some kernels of pmt, and return the figures that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        subprocess.run(
            [sys.executable, *words, "--json", str(file)],
            check=True,
            env={**os.environ, "PMT_ISA": isa, **ENVIRONMENT[isa]},
        )
        return json.loads(file.read_text(encoding="utf-8"))


def machine(figures: dict[str, Any], isa: str) -> dict[str, Any]:
    """Return what every file of the host says of the machine.

    The peak is that of the processor's best instruction, which kernels without VNNI do not use.
    """
    kept = {"processor": processor(), "kernels": figures["kernels"]}
    if isa != "avx512_vnni":
        return kept
    peaks = {"1": figures["one_thread_gmacs"], **figures["peak_gmacs"]}
    return {**kept, "peak_instruction": figures["peak_instruction"], "peak_gmacs": peaks}


def compiler() -> str:
    """Return the version of the Arm compiler."""
    words = ["arm-none-eabi-g++", "-dumpversion"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def measured(part: str, models: Path) -> dict[str, Any]:
    """Run a part; floats are kept to four digits."""
    return {**origin(), "table": TABLES[part], **rounded(PARTS[part](models))}


def rounded(value: Any) -> Any:
    """Round the floats within."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


HOST = {"onednn": onednn, "engines": engines, "layers": layers, "steps": steps}
CORTEX = {
    "cortex-forward": cortex_forward,
    "cortex-steps": cortex_steps,
    "cortex-of-a-mac": cortex_of_a_mac,
    "cortex-estimates": cortex_estimates,
}
PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    **{
        f"{name}-{isa}": functools.partial(function, isa=isa)
        for isa in ENVIRONMENT
        for name, function in HOST.items()
    },
    **CORTEX,
}
# The table that shows a part.
TABLES = {part: part if part in CORTEX else part.partition("-")[0] for part in PARTS}
