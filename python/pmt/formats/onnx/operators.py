"""Which ONNX operators are converted, by what, and what to do about the others."""

from __future__ import annotations

from collections.abc import Callable

from pmt.formats.onnx import (
    elementwise as onnx_elementwise,
)
from pmt.formats.onnx import (
    layers as onnx_layers,
)
from pmt.formats.onnx import (
    poolings as onnx_poolings,
)
from pmt.formats.onnx import (
    quantisation as onnx_quantisation,
)
from pmt.formats.onnx import (
    shapes as onnx_shapes,
)
from pmt.formats.onnx.call import Call, Value
from pmt.formats.onnx.folding import shape_of

__all__ = ["CONVERTERS", "PASS_THROUGH", "remedy"]

CONVERTERS: dict[str, Callable[[Call], Value]] = {
    "Add": onnx_elementwise.addition,
    "AveragePool": onnx_poolings.average_pool,
    "BatchNormalization": onnx_elementwise.batch_normalisation,
    "Cast": onnx_shapes.cast,
    "Clip": onnx_elementwise.clip,
    "Conv": onnx_layers.convolution,
    "DequantizeLinear": onnx_quantisation.dequantise,
    "Div": onnx_elementwise.division,
    "Dropout": onnx_shapes.dropout,
    "Flatten": onnx_shapes.flatten,
    "Gather": onnx_shapes.gather,
    "Gemm": onnx_layers.gemm,
    "GlobalAveragePool": onnx_poolings.global_average_pool,
    "GlobalMaxPool": onnx_poolings.global_max_pool,
    "Identity": onnx_shapes.copy,
    "LogSoftmax": onnx_shapes.softmax,
    "MatMul": onnx_layers.matrix_product,
    "Max": onnx_elementwise.maximum,
    "MaxPool": onnx_poolings.max_pool,
    "Min": onnx_elementwise.minimum,
    "Mul": onnx_elementwise.multiplication,
    "Pad": onnx_poolings.pad,
    "QuantizeLinear": onnx_quantisation.quantise,
    "ReduceMean": onnx_poolings.reduce_mean,
    "Relu": onnx_elementwise.relu,
    "Reshape": onnx_shapes.reshape,
    "Shape": shape_of,
    "Softmax": onnx_shapes.softmax,
    "Squeeze": onnx_shapes.squeeze,
    "Sub": onnx_elementwise.subtraction,
    "Sum": onnx_elementwise.addition,
    "Transpose": onnx_shapes.transpose,
    "Unsqueeze": onnx_shapes.unsqueeze,
}

_ACTIVATIONS = (
    *("HardSwish", "HardSigmoid", "Sigmoid", "Swish", "Mish", "Elu", "Selu", "Celu", "Gelu"),
    *("LeakyRelu", "PRelu", "ThresholdedRelu", "Softplus", "Tanh", "Erf"),
)
_NORMALISATIONS = ("InstanceNormalization", "LayerNormalization", "GroupNormalization", "LRN")
_STATIC = (
    "quantise with onnxruntime.quantization.quantize_static(quant_format=QuantFormat.QDQ), or give "
    "the float network to `pmt quantize`"
)
_INTEGER = (
    *("ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"),
    *("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm"),
)
_REMEDIES = {
    **dict.fromkeys(_ACTIVATIONS, "train the network with ReLU or ReLU6 instead"),
    **dict.fromkeys(_NORMALISATIONS, "use batch norm, which is folded into the layers"),
    **dict.fromkeys(_INTEGER, _STATIC),
    "ArgMax": "export up to the logits, the input of ArgMax",
    "Concat": "use Add to join branches",
    "Split": "export without branches over parts of the channels",
    "ConvTranspose": "only classifiers are supported",
    "Resize": "resize the images before the network",
}
# Of the shape of their input: what follows them can still be looked at.
_ELEMENTWISE = ("Abs", "Sqrt", "Exp", "Neg", "Pow", "Mul", "Div", "Sub")
PASS_THROUGH = frozenset((*_ACTIVATIONS, *_NORMALISATIONS, *_ELEMENTWISE))


def remedy(kind: str) -> str:
    """Return what a user can do about an operator that is not supported."""
    elsewhere = "replace it before the export; docs/guides/importers_onnx.md lists others"
    return _REMEDIES.get(kind, elsewhere)
