// The arrays of the definitions.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernels/table.hpp"

// The headers of either release series of xtensor.
#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/generators/xbuilder.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

namespace pmt::reference {

template <typename Value>
using Vector = xt::xtensor<Value, 1>;
using Image = xt::xtensor<int8_t, 3>;             // [height][width][channels]
using Sums = xt::xtensor<int64_t, 3>;             // accumulators, [height][width][channels]
using ConvWeights = xt::xtensor<int8_t, 4>;       // [out][kernel_h][kernel_w][in]
using DepthwiseWeights = xt::xtensor<int8_t, 3>;  // [kernel_h][kernel_w][out]
using DenseWeights = xt::xtensor<int8_t, 2>;      // [out][in elements]

// Zero point of an int8 output, and the bounds that its fused activation leaves.
struct OutputRange {
  int32_t zero_point, low, high;
};

// The parameters that turn the accumulators of a linear op into int8; one scale and bias per output channel.
struct Requantization {
  Vector<int32_t> bias;
  Vector<float> scales;  // s_x * s_w / s_y
  OutputRange range;
};

inline Image make_image(const Shape& shape) {
  const std::array<size_t, 3> sizes = {static_cast<size_t>(shape.height), static_cast<size_t>(shape.width),
                                       static_cast<size_t>(shape.channels)};
  return Image(sizes);
}

inline Shape shape_of(const Image& image) {
  return {static_cast<int32_t>(image.shape(0)), static_cast<int32_t>(image.shape(1)),
          static_cast<int32_t>(image.shape(2))};
}

}  // namespace pmt::reference
