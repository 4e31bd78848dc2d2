#include "core/learner/window_alignment.hpp"

#include "core/align/image_noise.hpp"
#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

int32_t channel_count(const Model& model, int32_t op) { return model.input_of(model.op(op)).channels; }

int32_t value_count(const WindowGroups& groups) { return groups.count * groups.values(); }

}  // namespace

int32_t WindowAlignment::clean_floats(const Model& model, int32_t op) {
  const WindowGroups groups = window_groups(model, op);
  return groups.count == 0 ? 0 : channel_count(model, op) + value_count(groups);
}

// The scratch memory is that of the sums, which are read before it is written to.
void WindowAlignment::take(const Model& model, int32_t op, bool tells_noise, Arena& arena) {
  group_ = 0;
  const WindowGroups groups = window_groups(model, op);
  means_ = arena.take<float>(int64_t{ImageGroups::usual} * channel_count(model, op));
  values_ = arena.take<float>(value_count(groups));
  squares_ = arena.take<float>(value_count(groups));
  of_group_ = tells_noise ? arena.take<float>(value_count(groups)) : nullptr;
  Arena measuring = arena;
  sums_.take(WindowSums::larger({}, model, op), 1, measuring);
  scratch_ = arena.take<uint8_t>(static_cast<int64_t>(covariance_alignment_bytes(groups)));
  if (measuring.used() > arena.used()) arena = measuring;
}

void WindowAlignment::begin(const Model& model, int32_t op, int32_t group) {
  if (group == 0) scatter_.begin(values_, squares_, value_count(window_groups(model, op)));
  sums_.begin(model, op, clean_);
}

void WindowAlignment::conclude(const Model& model, int32_t op, int32_t group, int32_t images) {
  const WindowGroups groups = window_groups(model, op);
  const int32_t channels = channel_count(model, op);
  sums_.conclude(images, means_ + group * channels);
  if (!linked::reliability || of_group_ == nullptr) {
    scatter_.add(images, [this](int32_t i) { return sums_.value(i); });
    return;
  }
  for (int32_t i = 0; i < value_count(groups); ++i) of_group_[i] = sums_.value(i);
  scatter_.add(images, [this](int32_t i) { return of_group_[i]; });
  shares_[group] = noise_share(groups, clean_ + channels, of_group_);
}

void WindowAlignment::shrink(const Model& model, int32_t op, const ImageGroups& images) {
  const int32_t channels = channel_count(model, op);
  shrink_windows(window_groups(model, op), clean_ + channels, scatter_);
  if (linked::reliability && of_group_ != nullptr) strength_ = reliability_strength(shares_, images.count);
  for (int32_t c = 0; c < channels; ++c) {
    int32_t count = 0;
    float sum = 0.0f;
    for (int32_t g = 0; g < images.count; ++g) {
      sum += means_[g * channels + c] * to_float(images.images[g]);
      count += images.images[g];
    }
    means_[c] = sum / to_float(count);
  }
}

bool WindowAlignment::align_group(const Model& model, int32_t op, const WritableLayer& layer) {
  const WindowStatistics clean = {clean_, clean_ + channel_count(model, op)};
  align_covariances(model, op, group_, clean, {means_, values_}, layer, scratch_);
  if (++group_ < window_groups(model, op).count) return true;
  clean_ += clean_floats(model, op);
  return false;
}

}  // namespace pmt
