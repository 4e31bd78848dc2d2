#include "reference/channel_statistics.hpp"

#include <cmath>

namespace pmt::reference {

MeanAndDeviation channel_statistics(const std::vector<Sums>& images, int32_t channel, int32_t bias, double scale) {
  std::vector<double> values;
  for (const Sums& sums : images) {
    for (const int64_t sum : xt::view(sums, xt::all(), xt::all(), channel)) {
      values.push_back((static_cast<double>(sum) + bias) * scale);
    }
  }
  const auto all = xt::adapt(values);
  const double mean = xt::mean(all)();
  return {mean, std::sqrt(xt::mean(xt::square(all - mean))())};
}

}  // namespace pmt::reference
