#include "reference/update.hpp"

#include <algorithm>
#include <cmath>

namespace pmt::reference {

double scaled_update(double gradient, double learning_rate, double scale) {
  return learning_rate * gradient / (scale * scale);
}

int8_t updated_weight(int8_t weight, double update) {
  return static_cast<int8_t>(std::clamp(weight - std::nearbyint(update), -127.0, 127.0));
}

int32_t updated_bias(int32_t bias, double update) {
  return static_cast<int32_t>(std::clamp(bias - std::nearbyint(update), -2147483648.0, 2147483647.0));
}

double gradient_norm_scaling(double k, double dimension) { return k / (k + dimension - 1.0); }

}  // namespace pmt::reference
