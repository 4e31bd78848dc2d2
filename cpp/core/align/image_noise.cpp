#include "core/align/image_noise.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

// Chosen on held-out images: the strength as a multiple of the share beyond the margin, which clean images reach by
// chance. Severe Gaussian noise has a share of a third.
constexpr float strength_of_share = 2.5f;
constexpr float margin = 0.05f;
// The shorter side over the radius: a local mean is over 2 radius + 1 pixels a side, at least 3.
constexpr float shorter_side_over_radius = 16.0f;

// The covariance of a group's channels with themselves at a distance, summed.
float own_covariance(const WindowGroups& groups, const float* values, int32_t lag) {
  float sum = 0.0f;
  for (int32_t c = 0; c < groups.channels; ++c) sum += values[(lag * groups.channels + c) * groups.channels + c];
  return sum;
}

// The roughness of a group whose variance is above 0.
float roughness(const WindowGroups& groups, const float* values) {
  float sum = 0.0f, count = 0.0f;
  const auto add = [&](int32_t lag) {
    sum += own_covariance(groups, values, lag);
    count += 1.0f;
  };
  if (groups.kernel_w > 1) add(groups.kernel_w - 1);
  if (groups.kernel_h > 1) add(groups.lags() - groups.kernel_w);
  return 1.0f - sum / (count * own_covariance(groups, values, 0));
}

int32_t radius_of(const TensorRecord& image) {
  const int32_t shorter = image.height < image.width ? image.height : image.width;
  const int32_t radius = round_half_even(to_float(shorter) / shorter_side_over_radius);
  return radius < 1 ? 1 : radius;
}

// The nearest integer to sum / count, the upper one of two.
int32_t rounded_mean(int32_t sum, int32_t count) {
  const int32_t twice = 2 * sum + count, quotient = twice / (2 * count);
  return twice % (2 * count) < 0 ? quotient - 1 : quotient;
}

}  // namespace

float noise_share(const WindowGroups& groups, const float* clean, const float* found) {
  float before = 0.0f, after = 0.0f;
  for (int64_t g = 0; g < groups.count; ++g) {
    const float* const known = clean + g * groups.values();
    const float* const now = found + g * groups.values();
    if (!(own_covariance(groups, known, 0) > 0.0f) || !(own_covariance(groups, now, 0) > 0.0f)) continue;
    before += roughness(groups, known);
    after += roughness(groups, now);
  }
  return after > before && after > 0.0f ? 1.0f - before / after : 0.0f;
}

float reliability_strength(const float* shares, int32_t groups) {
  if (groups < 2) return 0.0f;
  float sum = 0.0f, squares = 0.0f;
  for (int32_t g = 0; g < groups; ++g) sum += shares[g];
  const float mean = sum / to_float(groups);
  for (int32_t g = 0; g < groups; ++g) squares += (shares[g] - mean) * (shares[g] - mean);
  const float error = __builtin_sqrtf(squares / (to_float(groups) * to_float(groups - 1)));
  return clamp(strength_of_share * (mean - 2.0f * error - margin), 0.0f, 1.0f);
}

int32_t noise_probe_sums(const TensorRecord& image) { return image.width * image.channels; }

// sums[i] is the sum of element i's column over the rows of the squares; it moves down with them.
void add_noise_probe(const TensorRecord& shape, const int8_t* image, const int8_t* other, int32_t* sums,
                     int8_t* probe) {
  const int32_t radius = radius_of(shape), row = noise_probe_sums(shape), channels = shape.channels;
  const auto add_row = [&](int32_t y, int32_t sign) {
    if (y < 0 || y >= shape.height) return;
    for (int32_t i = 0; i < row; ++i) sums[i] += sign * other[y * row + i];
  };
  const auto inside = [radius](int32_t at, int32_t size) {
    return (at + radius < size ? at + radius + 1 : size) - (at > radius ? at - radius : 0);
  };
  for (int32_t i = 0; i < row; ++i) sums[i] = 0;
  for (int32_t y = 0; y < radius; ++y) add_row(y, 1);
  for (int32_t y = 0; y < shape.height; ++y) {
    add_row(y + radius, 1);
    add_row(y - radius - 1, -1);
    for (int32_t c = 0; c < channels; ++c) {
      int32_t sum = 0;
      const auto add_column = [&](int32_t x, int32_t sign) {
        if (x >= 0 && x < shape.width) sum += sign * sums[x * channels + c];
      };
      for (int32_t x = 0; x < radius; ++x) add_column(x, 1);
      for (int32_t x = 0; x < shape.width; ++x) {
        add_column(x + radius, 1);
        add_column(x - radius - 1, -1);
        const int32_t count = inside(y, shape.height) * inside(x, shape.width);
        const int32_t at = y * row + x * channels + c;
        probe[at] = static_cast<int8_t>(clamp(image[at] + other[at] - rounded_mean(sum, count), -128, 127));
      }
    }
  }
}

}  // namespace pmt
