"""Train one model with several presets and seeds, and compare accuracy at equal forwards.

    python benchmarks/compare_presets.py MODEL --data DIR --out DIR [options]

Each run is a run folder under OUT, so a comparison that was stopped goes on where it was. Prints a
Markdown table and, with matplotlib, draws OUT/curves.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import pmt


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="model file")
    parser.add_argument("--data", required=True, help="data set folder")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--corruption", default="gaussian_noise")
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--layers", required=True, help="blocks or layers to train")
    parser.add_argument("--presets", default="default,paper")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--train", type=int, default=1000, help="first N training images")
    parser.add_argument("--test", type=int, default=1000, help="first N test images")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PRESET.OPTION=VALUE",
        help="an option of one preset, for example paper.learning_rate=1e-4; may be repeated",
    )
    return parser.parse_args()


def corrupted(arguments: argparse.Namespace, split: str, count: int, seed: int):
    clean = pmt.datasets.load(arguments.data, split=split).take(count)
    return clean, pmt.corruptions.corrupt(
        clean, arguments.corruption, arguments.severity, seed=seed
    )


def changes(settings: list[str], preset: str) -> dict[str, float]:
    """Options of one preset from --set; numbers only."""
    split = [setting.replace("=", ".", 1).split(".", 2) for setting in settings]
    return {option: float(value) for name, option, value in split if name == preset}


def run(a: argparse.Namespace, preset: str, seed: int, data, valid) -> pmt.RunResult:
    model = pmt.load(a.model)
    trainer = pmt.ZOTrainer(
        preset=preset,
        threads=a.threads,
        layers=a.layers,
        epochs=a.epochs,
        queries=a.queries,
        seed=seed,
        **changes(a.set, preset),
    )
    out = a.out / f"{preset}-{seed}"
    print(f"{out}: {trainer.options.epochs} epochs of {a.layers}", flush=True)
    source = {"model": Path(a.model).name, "corruption": a.corruption, "severity": a.severity}
    return trainer.fit(model, data, valid=valid, out=out, source=source)


def row(preset: str, seed: int, result: pmt.RunResult, clean) -> str:
    last = result.epochs[-1]
    accuracy = result.model.evaluate(clean).accuracy
    return (
        f"| {preset} | {seed} | {result.before['valid_accuracy']:.3f} "
        f"| {last['valid_accuracy']:.3f} | {result.before['valid_loss']:.3f} "
        f"| {last['valid_loss']:.3f} | {last['train_loss']:.3f} | {accuracy:.3f} "
        f"| {last['forwards']:,} | {last['macs'] / 1e9:,.0f} | {last['seconds']:.0f} |"
    )


def plot(results: dict[tuple[str, int], pmt.RunResult], path: Path) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print('no plot: pip install "poor-mans-training[plot]"')
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    colours = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(p for p, _ in results))}
    for (preset, seed), result in results.items():
        x = np.array([0, *(record["forwards"] for record in result.epochs)]) / 1000
        for ax, key in zip(axes, ("valid_loss", "valid_accuracy"), strict=True):
            y = [result.before[key], *(record[key] for record in result.epochs)]
            label = preset if seed == min(s for p, s in results if p == preset) else None
            ax.plot(x, y, color=colours[preset], marker=".", alpha=0.7, label=label)
            ax.set_xlabel("thousand perturbed forwards")
            ax.set_ylabel(key.replace("valid_", "test "))
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    figure.savefig(path, dpi=120)
    print(f"curves: {path}")


def main() -> None:
    a = arguments()
    _, data = corrupted(a, "train", a.train, 0)
    clean, valid = corrupted(a, "test", a.test, 1)
    results = {}
    lines = []
    for preset in a.presets.split(","):
        for seed in map(int, a.seeds.split(",")):
            results[preset, seed] = run(a, preset, seed, data, valid)
            lines.append(row(preset, seed, results[preset, seed], clean))
    print()
    print(
        "| preset | seed | before | after | loss before | after | train loss | clean after ", end=""
    )
    print("| forwards | GMAC | seconds |")
    print("|---" * 11 + "|")
    print("\n".join(lines))
    plot(results, a.out / "curves.png")


if __name__ == "__main__":
    main()
