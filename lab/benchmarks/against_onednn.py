"""Compare a model's convolutions with oneDNN's, layer by layer, on one thread.

    python benchmarks/against_onednn.py MODEL [--images 1,100] [--repeat 7] [--json FILE]

Builds benchmarks/onednn into build/onednn (needs CMake, a compiler and Debian's libdnnl-dev), gives
it the layers with real activations, and takes turns with pmt at each. oneDNN reorders the weights
once into the layout it prefers and may take s8 or u8 activations, one image after the other or all
at once: for each layer the fastest counts. Each figure is the shortest of its measurements:
guests that share the processor slow the two programs down by different factors. On x86 without
VNNI its sums of products saturate (u8) or its weights are halved (s8); `wrong` is the share of
outputs that differ from pmt's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import pmt
from pmt import _core
from pmt._util.text import table
from pmt_lab.benchmark.forward import group_of, random_images
from pmt_lab.benchmark.timing import Machine

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "onednn"


@dataclass
class Layer:
    """A convolution, and microseconds an image by number of images."""

    op: int
    name: str
    group: str
    shape: str
    macs: int
    outputs: int
    pmt: dict[int, float] = field(default_factory=dict)
    onednn: dict[int, float] = field(default_factory=dict)
    implementation: str = ""
    wrong: float = 0.0


class Program:
    """The oneDNN program, set up for a number of images; see onednn/main.cpp for its commands."""

    def __init__(self, folder: Path, images: int) -> None:
        self.images = images
        self.process = subprocess.Popen(
            [BUILD / "onednn_layers", folder, str(images)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ask(self, command: str) -> dict[tuple[int, str], list[str]]:
        """Answers by layer and type of the activations."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answers = {}
        for line in iter(self.process.stdout.readline, "end\n"):
            if not line:
                raise SystemExit("the oneDNN program stopped; its error is above")
            index, kind, *rest = line.split()
            answers[int(index), kind] = rest
        return answers


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="model file, or the name of the bundled one")
    parser.add_argument("--images", default="1,100", help="numbers of images (default: 1,100)")
    parser.add_argument(
        "--repeat",
        type=int,
        default=7,
        help="measurements, of which the shortest counts (default: 7)",
    )
    parser.add_argument("--json", type=Path, help="write the figures as JSON")
    return parser.parse_args()


def build() -> None:
    source = ROOT / "lab" / "benchmarks" / "onednn"
    for command in (["cmake", "-S", source, "-B", BUILD], ["cmake", "--build", BUILD]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def write_layers(model: pmt.Model, folder: Path) -> list[Layer]:
    """Write layers.txt and layers.bin, as onednn/layer.hpp describes them."""
    graph = model.to_graph()
    activations = model.core.activations(random_images(model, 1)[0])
    layers = []
    with open(folder / "layers.txt", "w") as text, open(folder / "layers.bin", "wb") as data:
        for index, op in enumerate(graph.ops):
            if op.kind not in ("conv2d", "depthwise_conv2d"):
                continue
            source, out = graph.tensors[op.inputs[0]], graph.tensors[op.output]
            depthwise = op.kind == "depthwise_conv2d"
            shapes = [(t.height, t.width, t.channels) for t in (source, out)]
            zeros = (source.zero_point, out.zero_point)
            numbers = [int(depthwise), *shapes[0], *shapes[1], *op.kernel, *op.stride]
            print(f"layer{index}", *numbers, *op.padding[:2], *zeros, *op.clamp, file=text)
            weights = op.weights.transpose((2, 0, 1) if depthwise else (0, 3, 1, 2))
            scales = np.float32(source.scale) * op.weight_scales / np.float32(out.scale)
            for array in (
                activations[op.inputs[0]], weights, op.bias, scales.astype(np.float32),
                activations[op.output],
            ):  # fmt: skip
                data.write(np.ascontiguousarray(array).tobytes())
            shape = " > ".join("x".join(map(str, s)) for s in shapes)
            group = group_of(op.kind, op.kernel, source.channels)
            macs = int(model.core.ops()[index]["macs"])
            layers.append(
                Layer(index, op.name, group, f"{shape} /{op.stride[0]}", macs, out.elements)
            )
    return layers


def measure(model: pmt.Model, programs: list[Program], layers: list[Layer], repeat: int) -> None:
    profilers = {
        p.images: _core.Profiler(model.core, random_images(model, p.images)) for p in programs
    }
    own = defaultdict(list)
    theirs = defaultdict(list)
    for _ in range(repeat):
        for position, layer in enumerate(layers):
            for program in programs:
                for (_, kind), (microseconds,) in program.ask(f"time {position}").items():
                    theirs[program.images, position, kind].append(float(microseconds))
                seconds = profilers[program.images].time_op(layer.op)
                own[program.images, layer.op].append(seconds * 1e6)
    described = programs[0].ask("describe")
    for position, layer in enumerate(layers):
        layer.pmt = {p.images: min(own[p.images, layer.op]) for p in programs}
        times = {
            (images, kind): min(values)
            for (images, index, kind), values in theirs.items()
            if index == position
        }
        for p in programs:
            layer.onednn[p.images] = min(t for (n, _), t in times.items() if n <= p.images)
        _, kind = min(times, key=times.get)
        name, wrong, _ = described[position, kind]
        layer.implementation = f"{kind} {name}"
        layer.wrong = int(wrong) / (layer.outputs * programs[0].images)


def sums(layers: list[Layer]) -> list[Layer]:
    """The layers of each group added up, and all."""
    groups = {group: [x for x in layers if x.group == group] for group in _groups(layers)}
    groups["all convolutions"] = layers
    return [
        Layer(
            -1, name, name, "", sum(x.macs for x in members), sum(x.outputs for x in members),
            {n: sum(x.pmt[n] for x in members) for n in members[0].pmt},
            {n: sum(x.onednn[n] for x in members) for n in members[0].onednn},
        )
        for name, members in groups.items()
    ]  # fmt: skip


def _groups(layers: list[Layer]) -> list[str]:
    return list(dict.fromkeys(layer.group for layer in layers))


def speeds(layer: Layer) -> list[str]:
    cells = [f"{layer.macs:,}"]
    for images, microseconds in layer.pmt.items():
        other = layer.onednn[images]
        cells += [f"{other:.2f}", f"{microseconds:.2f}", f"{microseconds / other:.2f}"]
        cells += [f"{layer.macs / other / 1e3:.1f}", f"{layer.macs / microseconds / 1e3:.1f}"]
    return cells


def report(layers: list[Layer]) -> str:
    titles = ["layer", "shape", "MACs"]
    for images in layers[0].pmt:
        titles += [f"oneDNN us @{images}", "pmt us", "pmt/oneDNN", "oneDNN GMAC/s", "pmt"]
    titles += ["oneDNN used", "wrong"]
    rows = [
        [x.name, x.shape, *speeds(x), x.implementation, f"{100 * x.wrong:.1f} %"] for x in layers
    ]
    rows.append([""] * len(titles))
    rows += [[x.name, x.shape, *speeds(x), "", ""] for x in sums(layers)]
    return table(titles, rows, left=("layer", "shape", "oneDNN used"))


def main() -> None:
    a = arguments()
    model = pmt.load(a.model)
    build()
    machine = Machine.measured((1,))
    print(
        f"{a.model}: pmt {machine.pmt}, kernels {machine.kernels}, {machine.processor}, 1 thread; "
        f"peak of {machine.peak_instruction} {machine.one_thread_gmacs:.1f} GMAC/s\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        layers = write_layers(model, Path(folder))
        programs = [Program(Path(folder), int(count)) for count in a.images.split(",")]
        measure(model, programs, layers, a.repeat)
        for program in programs:
            program.process.stdin.close()
            program.process.wait()
    print(report(layers))
    if a.json is not None:
        figures = {"machine": vars(machine), "layers": [vars(layer) for layer in layers]}
        a.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
