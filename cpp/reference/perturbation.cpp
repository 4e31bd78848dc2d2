#include "reference/perturbation.hpp"

namespace pmt::reference {

Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high) {
  const Vector<int32_t> moved = xt::cast<int32_t>(values) + mu * xt::cast<int32_t>(signs);
  return xt::cast<int8_t>(xt::clip(moved, low, high));
}

}  // namespace pmt::reference
