#include "reference/reliability.hpp"

#include <algorithm>
#include <cmath>

namespace pmt::reference {
namespace {

Vector<double> centered(const std::vector<Image>& images, int32_t channel) {
  std::vector<double> values;
  for (const Image& image : images) {
    for (const int8_t value : xt::view(image, xt::all(), xt::all(), channel)) values.push_back(value);
  }
  const Vector<double> all = xt::adapt(values);
  return all - xt::mean(all)();
}

}  // namespace

double reliability(const std::vector<Image>& first, const std::vector<Image>& second, int32_t channel) {
  const Vector<double> a = centered(first, channel);
  const Vector<double> b = centered(second, channel);
  const double power = xt::sum(a * a)() * xt::sum(b * b)();
  return power > 0 ? std::max(0.0, xt::sum(a * b)() / std::sqrt(power)) : 1.0;
}

}  // namespace pmt::reference
