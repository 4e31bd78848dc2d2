#include "reference/input_filters.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pmt::reference {
namespace {

using Block = xt::xtensor<int64_t, 2>;
using Plane = xt::xtensor<int64_t, 2>;

int32_t side(const Pixels& image, size_t axis) { return static_cast<int32_t>(image.shape(axis)); }

uint8_t pixel(double value) { return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)); }

// The value at a place, or of the nearest one inside.
int32_t at(const Pixels& image, int32_t y, int32_t x, size_t c) {
  const int32_t row = std::clamp(y, 0, side(image, 0) - 1), column = std::clamp(x, 0, side(image, 1) - 1);
  return image(static_cast<size_t>(row), static_cast<size_t>(column), c);
}

std::vector<int32_t> window(const Pixels& image, int32_t y, int32_t x, size_t c) {
  std::vector<int32_t> values;
  for (int32_t dy = -1; dy <= 1; ++dy) {
    for (int32_t dx = -1; dx <= 1; ++dx) values.push_back(at(image, y + dy, x + dx, c));
  }
  return values;
}

// Calls `value` for every place and channel.
template <typename Value>
Pixels mapped(const Pixels& image, Value value) {
  Pixels output(image.shape());
  for (int32_t y = 0; y < side(image, 0); ++y) {
    for (int32_t x = 0; x < side(image, 1); ++x) {
      for (size_t c = 0; c < image.shape(2); ++c) {
        output(static_cast<size_t>(y), static_cast<size_t>(x), c) = value(y, x, c);
      }
    }
  }
  return output;
}

const Block transform = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
const Block colors = {{1, 1, 1}, {1, 0, -1}, {1, -2, 1}};

int64_t norm(const Block& rows, size_t k) {
  int64_t sum = 0;
  for (size_t i = 0; i < rows.shape(1); ++i) sum += rows(k, i) * rows(k, i);
  return sum;
}

Block product(const Block& a, const Block& b) {
  Block result = xt::zeros<int64_t>({a.shape(0), b.shape(1)});
  for (size_t i = 0; i < a.shape(0); ++i) {
    for (size_t j = 0; j < b.shape(1); ++j) {
      for (size_t k = 0; k < a.shape(1); ++k) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

Block transposed(const Block& block) { return xt::transpose(block); }

struct Decorrelated {
  std::vector<Plane> planes;
  std::vector<int64_t> norms;
  int64_t scale;
};

Decorrelated decorrelated(const Pixels& image) {
  const bool is_color = image.shape(2) == 3;
  Decorrelated result = {{}, {}, is_color ? 2400 : 400};
  for (size_t p = 0; p < image.shape(2); ++p) {
    Plane plane = xt::zeros<int64_t>({image.shape(0), image.shape(1)});
    for (size_t y = 0; y < image.shape(0); ++y) {
      for (size_t x = 0; x < image.shape(1); ++x) {
        for (size_t c = 0; c < image.shape(2); ++c) {
          plane(y, x) += (is_color ? colors(p, c) : (p == c ? 1 : 0)) * image(y, x, c);
        }
      }
    }
    result.planes.push_back(plane);
    result.norms.push_back(is_color ? norm(colors, p) : 1);
  }
  return result;
}

Block block_of(const Plane& plane, size_t y, size_t x) {
  return xt::view(plane, xt::range(y, y + 4), xt::range(x, x + 4));
}

// The squared threshold of a block in the sums' scale, every step rounded to float32.
float threshold_of(const Block& block, int64_t plane_norm, int64_t scale, int32_t threshold, NoiseModel noise) {
  int64_t sum = 0;
  for (const int64_t value : block) sum += value;
  const float mean = static_cast<float>(sum) * (1.0f / static_cast<float>(16 * 128 * plane_norm));
  const auto at_gray = static_cast<float>(scale * threshold * threshold);
  if (noise == NoiseModel::constant) return at_gray;
  return noise == NoiseModel::square_root ? at_gray * mean : at_gray * mean * mean;
}

Block shrunk_block(const Block& block, int64_t scale, int64_t plane_norm, float threshold) {
  Block kept = product(product(transform, block), transposed(transform));
  for (size_t k = 0; k < 4; ++k) {
    for (size_t j = 0; j < 4; ++j) {
      const int64_t value = kept(k, j),
                    scaled = value * (scale / (norm(transform, k) * plane_norm) / norm(transform, j));
      if (k == 0 && j == 0) {
        kept(k, j) = scaled;
      } else if (static_cast<float>(scaled) * static_cast<float>(value) > threshold) {
        kept(k, j) = static_cast<int64_t>(static_cast<float>(scaled) - threshold / static_cast<float>(value));
      } else {
        kept(k, j) = 0;
      }
    }
  }
  return product(product(transposed(transform), kept), transform);
}

std::vector<double> taps(int32_t from, int32_t to, int32_t place) {
  const double scale = static_cast<double>(from) / to, reach = std::max(scale, 1.0), center = (place + 0.5) * scale;
  std::vector<double> weights(static_cast<size_t>(from), 0.0);
  double sum = 0.0;
  const int32_t first = std::max(0, static_cast<int32_t>(center - reach + 0.5));
  const int32_t end = std::min(from, static_cast<int32_t>(center + reach + 0.5));
  for (int32_t i = first; i < end; ++i) {
    weights[static_cast<size_t>(i)] = std::max(0.0, 1.0 - std::abs((i - center + 0.5) / reach));
    sum += weights[static_cast<size_t>(i)];
  }
  for (double& weight : weights) weight = std::floor(weight / sum * 4194304.0 + 0.5);
  return weights;
}

Pixels resample_rows(const Pixels& image, int32_t width) {
  Pixels output({image.shape(0), static_cast<size_t>(width), image.shape(2)});
  for (int32_t x = 0; x < width; ++x) {
    const std::vector<double> weights = taps(side(image, 1), width, x);
    for (size_t y = 0; y < image.shape(0); ++y) {
      for (size_t c = 0; c < image.shape(2); ++c) {
        double sum = 0.0;
        for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * image(y, i, c);
        output(y, static_cast<size_t>(x), c) = pixel(std::floor((sum + 2097152.0) / 4194304.0));
      }
    }
  }
  return output;
}

}  // namespace

Pixels switching_median(const Pixels& image, int32_t threshold) {
  return mapped(image, [&](int32_t y, int32_t x, size_t c) {
    std::vector<int32_t> values = window(image, y, x, c);
    const int32_t value = values[4];
    std::sort(values.begin(), values.end());
    const bool is_extreme = value == values.front() || value == values.back();
    return static_cast<uint8_t>(is_extreme && std::abs(value - values[4]) > threshold ? values[4] : value);
  });
}

Pixels dct_shrinkage(const Pixels& image, int32_t threshold, NoiseModel noise) {
  const Decorrelated all = decorrelated(image);
  const size_t height = image.shape(0), width = image.shape(1), channels = image.shape(2);
  std::vector<Plane> sums(channels, xt::zeros<int64_t>({height, width}));
  Plane covers = xt::zeros<int64_t>({height, width});
  for (size_t y = 0; y + 4 <= height; ++y) {
    for (size_t x = 0; x + 4 <= width; ++x) {
      xt::view(covers, xt::range(y, y + 4), xt::range(x, x + 4)) += 1;
      for (size_t p = 0; p < channels; ++p) {
        const size_t lightness = channels == 3 ? 0 : p;
        const float limit =
            threshold_of(block_of(all.planes[lightness], y, x), all.norms[lightness], all.scale, threshold, noise);
        xt::view(sums[p], xt::range(y, y + 4), xt::range(x, x + 4)) +=
            shrunk_block(block_of(all.planes[p], y, x), all.scale, all.norms[p], limit);
      }
    }
  }
  return mapped(image, [&](int32_t row, int32_t column, size_t c) {
    const auto y = static_cast<size_t>(row), x = static_cast<size_t>(column);
    int64_t sum = channels == 3 ? 0 : sums[c](y, x);
    for (size_t p = 0; channels == 3 && p < 3; ++p) sum += colors(p, c) * sums[p](y, x);
    const int64_t divisor = all.scale * covers(y, x);
    return pixel(static_cast<double>((std::max<int64_t>(sum, 0) + divisor / 2) / divisor));
  });
}

Pixels sharpening(const Pixels& image, int32_t amount) {
  const int32_t weights[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
  return mapped(image, [&](int32_t y, int32_t x, size_t c) {
    const std::vector<int32_t> values = window(image, y, x, c);
    int32_t mean = 0;
    for (size_t i = 0; i < 9; ++i) mean += weights[i] * values[i];
    return pixel(std::floor(values[4] + amount / 16.0 * (values[4] - mean / 16.0) + 0.5));
  });
}

Pixels standardization(const Pixels& image, int32_t deviation) {
  const auto count = static_cast<int64_t>(image.shape(0) * image.shape(1));
  return mapped(image, [&](int32_t y, int32_t x, size_t c) {
    int64_t sum = 0, squares = 0;
    for (size_t i = 0; i < image.shape(0); ++i) {
      for (size_t k = 0; k < image.shape(1); ++k) {
        sum += image(i, k, c);
        squares += image(i, k, c) * image(i, k, c);
      }
    }
    const auto rounded = [](int64_t value, int64_t divisor) {
      return value >= 0 ? (value + divisor / 2) / divisor : -((-value + divisor / 2) / divisor);
    };
    const int64_t mean = rounded(256 * sum, count);
    const int64_t variance = (65536 * squares - sum * rounded(65536 * sum, count)) / count;
    const auto found = static_cast<int64_t>(std::sqrt(static_cast<double>(std::max<int64_t>(variance, 0))));
    const int32_t value = at(image, y, x, c);
    if (found < 256) return static_cast<uint8_t>(value);
    const int64_t away = rounded((256 * value - mean) * deviation * 256, found);
    return pixel(std::floor(static_cast<double>(mean + away + 128) / 256.0));
  });
}

Pixels tone_curve(const Pixels& image, int32_t bend) {
  return mapped(image, [&](int32_t y, int32_t x, size_t c) {
    const int32_t value = at(image, y, x, c);
    return pixel(value + std::round(bend * value * (255 - value) / 4080.0));
  });
}

Pixels filtered(const Pixels& image, const FilterRecord& filter) {
  switch (filter.kind) {
    case FilterKind::none: break;
    case FilterKind::switching_median: return switching_median(image, filter.strength);
    case FilterKind::dct_shrinkage: return dct_shrinkage(image, filter.strength, filter.noise);
    case FilterKind::sharpening: return sharpening(image, filter.strength);
    case FilterKind::standardization: return standardization(image, filter.strength);
    case FilterKind::tone_curve: return tone_curve(image, filter.strength);
  }
  return image;
}

Pixels resample(const Pixels& image, int32_t height, int32_t width) {
  const Pixels rows = resample_rows(image, width);
  const Pixels turned = xt::transpose(rows, {1, 0, 2});
  return xt::transpose(resample_rows(turned, height), {1, 0, 2});
}

}  // namespace pmt::reference
