// Random small networks: convolutions, residual blocks, pools, pads and a head.
#pragma once

#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

enum class Head { fully_connected, conv2d, pool };

AlignedBytes random_network(RandomSource& random, int32_t stages, Head head);

// Weights, biases and scales that keep the activations of a layer inside int8. One channel in ten
// is dead: it has the scale and the bias of those in public networks.
LinearData random_linear_data(RandomSource& random, int32_t channels, int32_t taps);

}  // namespace pmt::tests
