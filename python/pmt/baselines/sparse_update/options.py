"""Options of sparse back-propagation, and the published schemes for MCUNet (MCUTrain)."""

from dataclasses import dataclass

from pmt._util.checks import checked_word
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import UpdateScheme, head_layer, layer_update
from pmt.model import Layer, Model
from pmt.train.option_fields import Range, document_options, option

# By the memory in KB: the number of last convolutions whose biases are trained, and the share of
# input channels by convolution whose weights are (Lin et al., "On-Device Training Under 256KB
# Memory", arXiv:2206.15472; the lists are those of github.com/mit-han-lab/tiny-training,
# compilation/mcu_ir_gen.py). Convolutions count from 0, the linear head does not.
PUBLISHED: dict[str, tuple[int, dict[int, float]]] = {
    "49KB": (20, {23: 0.0, 24: 0.25, 27: 0.5, 30: 0.5, 33: 0.0, 39: 0.0}),
    "74KB": (21, {21: 1.0, 23: 0.0, 24: 1.0, 26: 0.0, 27: 0.5, 30: 1.0}),
    "99KB": (22, {21: 1.0, 24: 1.0, 27: 1.0, 30: 1.0, 36: 0.125, 39: 0.25}),
    "124KB": (24, {21: 0.25, 24: 1.0, 27: 1.0, 30: 1.0, 33: 0.5, 39: 0.5}),
    "148KB": (23, {21: 1.0, 24: 1.0, 27: 1.0, 30: 1.0, 36: 1.0, 39: 0.5}),
}
_CONVOLUTIONS = 42


@document_options
@dataclass(frozen=True)
class MCUTrainOptions(BackpropOptions):
    """Options of MCUTrain; those of :class:`pmt.backprop.BackpropOptions`, and its scheme."""

    scheme: str = option(
        "99KB",
        "SCHEME",
        f"name of a published scheme of MCUNet ({', '.join(PUBLISHED)}), or a scheme as "
        "JSON. :class:`pmt.baselines.sparse_update.MCUTrainTrainer` takes a file's name too, "
        "and puts in what it holds",
    )
    chosen: str = option(
        "",
        "JSON",
        "the scheme with its channels, as JSON. Empty: they are chosen by the weights when "
        "training begins",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_layers(self.layers, "scheme")


@document_options
@dataclass(frozen=True)
class TinyTrainOptions(BackpropOptions):
    """Options of TinyTrain; those of :class:`pmt.backprop.BackpropOptions`, and its budgets."""

    memory: int = option(
        100 * 1024,
        "BYTES",
        "budget for the memory that the update adds, in bytes, by MCUTrain's count",
        Range(0),
    )
    backward_macs: float = option(
        0.3,
        "X",
        "budget of the backward pass, as a share of a full one's multiply-accumulates. MCUTrain's "
        "99 KB scheme takes 0.28 of MCUNet's",
        Range(0.0, 1.0, low_open=True, why="a share of the full backward pass"),
    )
    inspect: int = option(
        18,
        "N",
        "number of last layers before the head that are scored; 18 are six blocks of MCUNet",
        Range(1),
    )
    scored_images: int = option(
        200, "N", "training images that the scores are computed on: the first ones", Range(1)
    )
    chosen: str = option(
        "", "JSON", "the choice, as JSON. Empty: it is made by the data when training begins"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_layers(self.layers, "inspect")


def _refuse_layers(layers: str, instead: str) -> None:
    if layers != "all":
        raise ValueError(
            f"layers={layers!r} has no meaning here: what is trained follows {instead}"
        )


def published_scheme(model: Model, name: str) -> UpdateScheme:
    """Return a published scheme, which trains the linear head too.

    Parameters
    ----------
    model : Model
        A network of MCUNet's layers: 42 convolutions and a linear head.
    name : str
        One of :data:`PUBLISHED`: the training memory that the publication gives it.

    Raises
    ------
    ValueError
        If the name is unknown, or the network does not have 42 convolutions.
    """
    checked_word("scheme", name, PUBLISHED)
    layers = convolutions(model)
    if len(layers) != _CONVOLUTIONS:
        raise ValueError(
            f"scheme={name!r} is for MCUNet's 42 convolutions, this model has {len(layers)}; "
            "make one by contribution analysis"
        )
    biases, ratios = PUBLISHED[name]
    updates = [
        layer_update(model, layer, ratios.get(i, 0.0), bias=True)
        for i, layer in enumerate(layers)
        if i >= len(layers) - biases
    ]
    linear = head_layer(model)
    if linear is not None:
        updates += UpdateScheme.whole([linear], model).layers
    return UpdateScheme(tuple(updates))


def convolutions(model: Model) -> list[Layer]:
    """Return the layers that MCUTrain counts: all but the linear head."""
    head = head_layer(model)
    return [layer for layer in model.layers if layer.index != head]
