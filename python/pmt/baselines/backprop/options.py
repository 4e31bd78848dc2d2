"""Every choice of back-propagation training, and the baselines by name."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from pmt._util.checks import checked_word
from pmt.train.option_fields import Options, Range, Words, document_options, option
from pmt.train.prepare.preparation import ALIGN_IMAGES, PREPARATION, PreparationName
from pmt.train.run.head import CROSS_FIT, CrossFitting
from pmt.train.run.keep_best import HELD_OUT_SHARE, KEEP_BEST
from pmt.train.schedule import (
    BATCH,
    EPOCHS,
    FINAL_LEARNING_RATE,
    LAYERS,
    LEARNING_RATES,
    MACS,
    SEEDS,
)

Arithmetic = Literal["int8", "float32"]
Rounding = Literal["stochastic", "nearest", "truncation", "shadow"]
Preset = Literal["bp_fp32", "bp_int8", "bp_int8_shadow", "bp_bias_only", "bp_last_layer"]


@document_options
@dataclass(frozen=True)
class BackpropOptions(Options):
    """Options of a training run with back-propagation."""

    layers: str = LAYERS("all")
    epochs: int = EPOCHS(10)
    macs: int = MACS(0)
    batch: int = BATCH(100)
    learning_rate: float = option(
        0.003,
        "R",
        "factor of the gradient. With quantization-aware scaling and with {arithmetic} float32 it "
        "is that of gradient descent on real weights; without the scaling, on weight steps. The "
        "default suits 14 layers of MCUNet; with all 43 it diverges, a tenth of it does not",
        LEARNING_RATES,
    )
    final_learning_rate: float = FINAL_LEARNING_RATE(0.0)
    seed: int = option(1, "S", "seed of the order of samples and of stochastic rounding", SEEDS)
    arithmetic: Arithmetic = option(
        "int8",
        "NAME",
        "train the int8 network, or the float network that it stands for. What is measured and "
        "reported is the network that is trained; the model itself gets the float network's "
        "parameters quantized with the scales it has",
        Words(get_args(Arithmetic)),
    )
    rounding: Rounding = option(
        "stochastic",
        "NAME",
        "what becomes of an update of int8 weights. The first three store nothing but int8: the "
        "update is rounded to whole steps at random so that it is right on average, or to the "
        "nearest, or the new weight is cut off toward zero. The last keeps float32 copies that "
        "are trained and rounded in each forward pass: four more bytes for each weight, and what "
        "published figures of int8 training use. Without effect with {arithmetic} float32",
        Words(get_args(Rounding)),
    )
    quantization_aware_scaling: bool = option(
        True,
        help="divide a gradient by its weight's scale squared (biases: by that of an "
        "accumulator). Without effect with {arithmetic} float32",
    )
    momentum: float = option(
        0.0,
        "X",
        "share of the last update's direction that is kept. It takes four bytes for each trained "
        "parameter",
        Range(0.0, 1.0, high_open=True),
    )
    weight_decay: float = option(
        0.0, "X", "decay of weights, not of biases, for each unit of learning rate", Range(0.0, 1.0)
    )
    train_weights: bool = option(True, help="train weights")
    train_bias: bool = option(True, help="train biases")
    preparation: PreparationName = PREPARATION("none")
    align_images: int = ALIGN_IMAGES(1000)
    cross_fit: CrossFitting = CROSS_FIT("auto")
    keep_best: bool = KEEP_BEST(False)
    held_out_share: float = HELD_OUT_SHARE(0.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.train_weights and not self.train_bias:
            raise ValueError(
                "train_weights=False and train_bias=False leave nothing to train; turn one on"
            )
        if self.keep_best and self.arithmetic == "float32":
            raise ValueError(
                "keep_best=True does not go with arithmetic='float32': a .pmt holds no float "
                "network; use arithmetic='int8', or keep_best=False, which ends with the last step"
            )
        if self.cross_fit == "always" and self.has_float_copies:
            raise ValueError(
                "cross_fit='always' solves the head in int8, and float32 copies of it do not "
                "follow: use arithmetic='int8' and another rounding than 'shadow', or "
                "cross_fit='never'"
            )

    @property
    def has_float_copies(self) -> bool:
        """Whether float32 copies of the weights are trained."""
        return self.arithmetic == "float32" or self.rounding == "shadow"


# All layers of MCUNet diverge at 0.003, in float32 as in int8 (docs/reference/backprop.md).
_FULL: dict[str, Any] = {"learning_rate": 0.0003}

PRESETS: dict[Preset, dict[str, Any]] = {
    "bp_fp32": {**_FULL, "arithmetic": "float32"},
    "bp_int8": {**_FULL},
    "bp_int8_shadow": {**_FULL, "rounding": "shadow"},
    "bp_bias_only": {"learning_rate": 0.003, "train_weights": False},
    "bp_last_layer": {"learning_rate": 0.01, "layers": "head"},
}


def preset(name: Preset, **changes: Any) -> BackpropOptions:
    """Return the options of a baseline, with some changed.

    Parameters
    ----------
    name : {"bp_fp32", "bp_int8", "bp_int8_shadow", "bp_bias_only", "bp_last_layer"}
        Full training of the float network; of the int8 network with weights that are really rounded
        (stochastically), or with float32 shadow weights; only of its biases; only of the block
        ``head``.
    **changes
        Fields of :class:`pmt.backprop.BackpropOptions`.

    Returns
    -------
    BackpropOptions
        The options.

    Raises
    ------
    ValueError, TypeError
        If the name or an option is unknown, or a value is outside its range.
    """
    checked_word("preset", name, PRESETS)
    return BackpropOptions(**PRESETS[name]).replace(**changes)
