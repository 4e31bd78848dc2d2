// Random small networks.
#pragma once

#include "tests/aligned_bytes.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

enum class Head { fully_connected, conv2d, pool };

// Convolutions, residual blocks, pools, pads and a head.
AlignedBytes random_network(RandomSource& random, int32_t stages, Head head);

// Weights, biases and scales that keep the activations of a layer inside int8. One channel in ten
// is dead: it has the scale and the bias of those in public networks.
LinearData random_linear_data(RandomSource& random, int32_t channels, int32_t taps);

// A network without a main line, whose ops read any earlier tensors: convolutions, additions and concatenations over
// up to `ops` ops, then a head. Tensors have no, one or several readers, far apart; an addition or a concatenation may
// read one tensor twice.
AlignedBytes random_dag(RandomSource& random, int32_t ops);

// What a compact plan streams: `blocks` of an expansion, a depthwise layer or a pool of any window, stride and padding,
// and a projection, with a residual addition where the shapes allow one; then a fully connected head. An input stage
// has no filters.
AlignedBytes random_bottlenecks(RandomSource& random, int32_t blocks, bool has_stage = false, bool one_output = false);

}  // namespace pmt::tests
