"""Post-training quantisation: a float graph and some images become an int8 graph."""

from pmt.quantization.batch_norm import fold_batch_norm
from pmt.quantization.float_forward import float_activations, normalise
from pmt.quantization.float_graph import FloatGraph, FloatOp, FloatTensor
from pmt.quantization.integer_forward import integer_activations
from pmt.quantization.noise_report import OpNoise, format_noise, signal_to_noise
from pmt.quantization.post_training import quantize
from pmt.quantization.ranges import activation_ranges

__all__ = [
    "FloatGraph",
    "FloatOp",
    "FloatTensor",
    "OpNoise",
    "activation_ranges",
    "float_activations",
    "fold_batch_norm",
    "format_noise",
    "integer_activations",
    "normalise",
    "quantize",
    "signal_to_noise",
]
