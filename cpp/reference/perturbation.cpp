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

Vector<int8_t> node_signs(const Vector<int8_t>& signs, size_t positions) {
  Vector<int8_t> nodes = xt::zeros<int8_t>({positions * signs.size()});
  for (size_t i = 0; i < nodes.size(); ++i) nodes(i) = signs(i % signs.size());
  return nodes;
}

}  // namespace pmt::reference
