"""Post-training quantization: a float graph and some images become an int8 graph."""

from pmt.net.float_graph import FloatGraph, FloatOp, FloatTensor
from pmt.quantization.equalization import Equalization, equalize
from pmt.quantization.float_forward import (
    OpNoise,
    float_activations,
    float_logits,
    format_noise,
    integer_activations,
    normalize,
    signal_to_noise,
    worst,
)
from pmt.quantization.keras_model import from_keras
from pmt.quantization.post_training import (
    correct_biases,
    dequantize,
    quantize_graph,
    quantize_with_ranges,
    tensor_ranges,
)
from pmt.quantization.quantized_model import QuantizedModel, quantize
from pmt.quantization.ranges import RANGE_METHODS, RangeMethod, activation_ranges, cover_logits
from pmt.quantization.torch_module import from_torch

__all__ = [
    "RANGE_METHODS",
    "Equalization",
    "FloatGraph",
    "FloatOp",
    "FloatTensor",
    "OpNoise",
    "QuantizedModel",
    "RangeMethod",
    "activation_ranges",
    "correct_biases",
    "cover_logits",
    "dequantize",
    "equalize",
    "float_activations",
    "float_logits",
    "format_noise",
    "from_keras",
    "from_torch",
    "integer_activations",
    "normalize",
    "quantize",
    "quantize_graph",
    "quantize_with_ranges",
    "signal_to_noise",
    "tensor_ranges",
    "worst",
]
