#include "reference/alignment.hpp"

#include <algorithm>
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

namespace {

double mean_of(const std::vector<Image>& images, int32_t channel) {
  double sum = 0;
  for (const Image& image : images) {
    sum += xt::mean(xt::cast<double>(xt::view(image, xt::all(), xt::all(), channel)))();
  }
  return sum / static_cast<double>(images.size());
}

}  // namespace

double autocovariance(const std::vector<Image>& images, int32_t a, int32_t b, int32_t dy, int32_t dx) {
  const double mean_a = mean_of(images, a);
  const double mean_b = mean_of(images, b);
  double sum = 0;
  double positions = 0;
  for (const Image& image : images) {
    const Shape shape = shape_of(image);
    for (int32_t y = 0; y < shape.height; ++y) {
      for (int32_t x = 0; x < shape.width; ++x) {
        positions += 1;
        const bool inside = y + dy >= 0 && y + dy < shape.height && x + dx >= 0 && x + dx < shape.width;
        if (inside) sum += (image(y, x, a) - mean_a) * (image(y + dy, x + dx, b) - mean_b);
      }
    }
  }
  return sum / positions;
}

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

Image noise_probe(const Image& image, const Image& other) {
  const Shape shape = shape_of(image);
  const auto radius = std::max(1, static_cast<int32_t>(std::nearbyint(std::min(shape.height, shape.width) / 16.0)));
  Image probe = image;
  for (int32_t y = 0; y < shape.height; ++y) {
    for (int32_t x = 0; x < shape.width; ++x) {
      const auto square =
          xt::view(other, xt::range(std::max(0, y - radius), std::min(shape.height, y + radius + 1)),
                   xt::range(std::max(0, x - radius), std::min(shape.width, x + radius + 1)), xt::all());
      for (int32_t c = 0; c < shape.channels; ++c) {
        const double mean = xt::mean(xt::cast<double>(xt::view(square, xt::all(), xt::all(), c)))();
        const double value = image(y, x, c) + other(y, x, c) - std::floor(mean + 0.5);
        probe(y, x, c) = static_cast<int8_t>(std::clamp(value, -128.0, 127.0));
      }
    }
  }
  return probe;
}

}  // namespace pmt::reference
