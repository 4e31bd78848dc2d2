#include "reference/perturbation.hpp"

#include <algorithm>
#include <cmath>

namespace pmt::reference {

Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high) {
  const Vector<int32_t> moved = xt::cast<int32_t>(values) + mu * xt::cast<int32_t>(signs);
  return xt::cast<int8_t>(xt::clip(moved, low, high));
}

Vector<int8_t> perturb_free(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                            int32_t high) {
  return xt::where(values > low && values < high, perturb(values, signs, mu, low, high), values);
}

Vector<int8_t> perturb_channels(const Vector<int8_t>& values, const Vector<int8_t>& signs,
                                const Vector<int32_t>& channel_mu, bool channel_last, int32_t low, int32_t high) {
  Vector<int8_t> moved = values;
  const size_t channels = channel_mu.size(), taps = values.size() / channels;
  for (size_t i = 0; i < values.size(); ++i) {
    const int32_t mu = channel_mu(channel_last ? i % channels : i / taps);
    moved(i) = static_cast<int8_t>(std::clamp(values(i) + mu * signs(i), low, high));
  }
  return moved;
}

Vector<int32_t> channel_mu(const Vector<float>& scales, int32_t mu) {
  double sum = 0.0;
  int32_t live = 0;
  for (const float scale : scales) {
    if (scale < 1e-6f) continue;
    sum += scale;
    ++live;
  }
  Vector<int32_t> sizes = xt::zeros<int32_t>({scales.size()});
  for (size_t c = 0; c < scales.size(); ++c) {
    if (scales(c) < 1e-6f) continue;
    sizes(c) = static_cast<int32_t>(std::clamp(std::nearbyint(mu * sum / live / scales(c)), 1.0, 8.0));
  }
  return sizes;
}

size_t region_of(size_t position, size_t side, size_t regions) { return position * regions / side; }

Vector<int8_t> node_signs(const xt::xtensor<int8_t, 3>& signs, size_t height, size_t width) {
  xt::xtensor<int8_t, 3> nodes = xt::zeros<int8_t>({height, width, signs.shape(2)});
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      xt::view(nodes, y, x) =
          xt::view(signs, region_of(y, height, signs.shape(0)), region_of(x, width, signs.shape(1)));
    }
  }
  return xt::flatten(nodes);
}

}  // namespace pmt::reference
