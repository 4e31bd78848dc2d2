#include "reference/perturbation.hpp"

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
