#include "reference/autocovariance.hpp"

namespace pmt::reference {
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

}  // namespace pmt::reference
