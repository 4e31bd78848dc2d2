"""``pmt info``: describe a model, and the cost of training it."""

import argparse
from typing import Any

from pmt._util.text import counted, table
from pmt.cli.arguments import add_layers, add_model, add_rule, integer, load_model, training_options
from pmt.cli.output import Output
from pmt.model import Model
from pmt.net.pixels import input_formula, reads_pixels, real_pixels
from pmt.profiling.model_info import ModelInfo, describe_model
from pmt.train.options import PRESETS, preset

USAGE = "pmt info MODEL [--layers SPEC] [--batch N] [--plan] [options]"
SUMMARY = "layers, shapes, weights, MACs, blocks and memory of a model"
DESCRIPTION = """\
Show a model: its layers, the estimator that training would use for each, its blocks, and the
memory of inference and of training. MACs are multiply-accumulates of one image."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    add_layers(parser)
    parser.add_argument("--preset", metavar="NAME", help="default or paper (default: default)")
    parser.add_argument(
        "--batch",
        metavar="N",
        type=integer(1),
        help=f"images of a training step ({_preset_values('batch')})",
    )
    parser.add_argument(
        "--queries",
        metavar="Q",
        type=integer(1, 4096),
        help=f"queries for each image and layer ({_preset_values('queries')})",
    )
    add_rule(parser)
    parser.add_argument("--plan", action="store_true", help="print where every activation lives")


def _preset_values(name: str) -> str:
    return ", ".join(f"{p}: {getattr(preset(p), name)}" for p in PRESETS)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    options = training_options(arguments)
    names_layers = arguments.layers is not None or arguments.block is not None
    found = describe_model(load_model(arguments), options, every_layer=not names_layers)
    output.text(_layer_table(found.model, found.estimators))
    output.text("\n" + _summary(found))
    if arguments.plan:
        output.text("\n" + _plan_table(found.memory.plan))
    output.figures(found.to_json())
    return 0


def _layer_table(model: Model, estimators: dict[int, str]) -> str:
    layers = {layer.index: layer for layer in model.layers}
    tensors = model.core.tensors()
    rows = []
    for op in model.core.ops():
        out = tensors[op["output"]]
        layer = layers.get(op["index"])
        rows.append(
            [
                str(op["index"]),
                op["name"],
                op["kind"],
                f"{out['height']}x{out['width']}x{out['channels']}",
                f"{out['scale']:.3g}",
                str(out["zero_point"]),
                _scale_range(model, op) if layer else "",
                f"{layer.weights:,}" if layer else "",
                f"{layer.macs:,}" if layer else "",
                str(layer.dead_channels) if layer else "",
                estimators.get(op["index"], ""),
                " ".join(name for name, members in model.blocks.items() if op["index"] in members),
            ]
        )
    titles = ["op", "layer", "kind", "output", "scale", "zero", "weight scales"]
    titles += ["weights", "MACs", "dead", "estimator", "blocks"]
    return table(titles, rows, left=("layer", "kind", "output", "estimator", "blocks"))


def _scale_range(model: Model, op: dict[str, Any]) -> str:
    scales = model.core.weight_scales(op["index"])
    low, high = f"{scales.min():.2g}", f"{scales.max():.2g}"
    return low if low == high else f"{low}..{high}"


def _summary(found: ModelInfo) -> str:
    model, options, memory = found.model, found.options, found.memory
    layers = model.layers
    height, width, channels = model.input_shape
    stage = model.input_stage
    trained = "all layers" if len(found.layers) == len(layers) else f"layers {options.layers}"
    lines = [
        f"{counted(len(layers), 'layer')}, "
        f"{sum(layer.weights for layer in layers):,} int8 weights, "
        f"{sum(layer.biases for layer in layers):,} int32 biases, {model.macs:,} MACs per image, "
        f"{model.output_text}",
        f"input     {height}x{width}x{channels}: {_input_text(model)}",
        *([] if stage is None else [f"stage     {stage.size[0]}x{stage.size[1]}: {stage}"]),
        f"image     {len(model.image()):,} bytes as .pmt",
        f"inference {memory.inference_activations:,} bytes of activations alive at once",
        f"training  {memory.training_activations:,} bytes of activations, "
        f"{memory.training_arena:,} bytes in all, beside the model "
        f"({trained}; batch {options.batch}, {counted(options.queries, 'query', 'queries')}, on a "
        "device)",
    ]
    return "\n".join(lines)


def _input_text(model: Model) -> str:
    graph = model.to_graph()
    formula = input_formula(graph)
    if not reads_pixels(graph):
        return formula
    return f"{formula}; pixels 0..255 are read as {real_pixels(graph)}"


def _plan_table(plan: list[dict[str, Any]]) -> str:
    titles = ["what", "tensor", "pass", "offset", "bytes", "first op", "last op"]
    keys = ["what", "tensor", "pass", "offset", "bytes", "first", "last"]
    rows = [[str(buffer[key]) for key in keys] for buffer in plan]
    return table(titles, rows, left=("what", "pass"))
