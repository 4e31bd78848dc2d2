#include "core/zo/region_gradient.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

bool is_depthwise(const StepContext& context, const Layer& layer) {
  return context.model().op(layer.op).kind == OpKind::depthwise_conv2d;
}

}  // namespace

RegionGradient::RegionGradient(const StepContext& context, const Workspace& workspace, const Layer& layer)
    : context_(context),
      workspace_(workspace),
      layer_(layer),
      regions_(regions_of(context.model(), layer)),
      patch_sums_(sums_patches(*context.options) ? workspace.region_values + node_columns(layer) : nullptr),
      taps_(patch_sum_count(context.model(), layer)) {
  const auto columns = static_cast<uint32_t>(node_columns(layer));
  __builtin_memset(workspace.region_values, 0, columns * sizeof(int32_t));
  if (patch_sums_ == nullptr) return;
  __builtin_memset(patch_sums_, 0,
                   static_cast<uint32_t>(taps_) * static_cast<uint32_t>(regions_.count()) * sizeof(int32_t));
}

void RegionGradient::count(const LayerRows& rows) {
  const OpRecord& op = context_.model().op(layer_.op);
  const int8_t* nodes = rows.output;
  for (int32_t y = 0; y < rows.shape.out.height; ++y, ++y_) {
    for (int32_t x = 0; x < regions_.width; ++x, nodes += layer_.channels) {
      const int32_t region = regions_.at(y_, x);
      int32_t* counts = workspace_.region_values + region * layer_.channels;
      for (int32_t c = 0; c < layer_.channels; ++c) {
        counts[c] += nodes[c] > op.clamp_min && nodes[c] < op.clamp_max ? 1 : 0;
      }
      if (patch_sums_ != nullptr) add_patch(rows, y, x, region);
    }
  }
}

void RegionGradient::add_patch(const LayerRows& rows, int32_t y, int32_t x, int32_t region) {
  const int32_t channels = rows.shape.in.channels;
  const int32_t zero_point = context_.model().input_of(context_.model().op(layer_.op)).zero_point;
  int32_t* sums = patch_sums_ + region * taps_;
  for_window(rows, y, x, [&](const int8_t* pixel, int32_t place) {
    for (int32_t c = 0; c < channels; ++c) sums[place * channels + c] += pixel[c] - zero_point;
  });
}

// The square of the mean patch of a region: of all channels, or of every `step`-th one from `first` on.
int64_t RegionGradient::mean_squares(int32_t region, int32_t first, int32_t step) const {
  const int32_t* sums = patch_sums_ + region * taps_;
  const int64_t positions = regions_.positions(region);
  int64_t sum = 0;
  for (int32_t k = first; k < taps_; k += step) sum += int64_t{sums[k]} * sums[k];
  return divide_rounded(sum, positions * positions);
}

int64_t RegionGradient::factor_squares() const {
  const Model& model = context_.model();
  const float* scales = model.weight_scales(model.op(layer_.op));
  const int32_t inputs = model.input_of(model.op(layer_.op)).channels;
  const bool by_bias = patch_sums_ == nullptr, depthwise = is_depthwise(context_, layer_);
  const int32_t multiplier = depthwise ? layer_.channels / inputs : 1;
  int64_t total = 0;
  for (int32_t region = 0; region < regions_.count(); ++region) {
    const int32_t* counts = workspace_.region_values + region * layer_.channels;
    const int64_t whole = by_bias ? 1 : (depthwise ? 0 : mean_squares(region, 0, 1));
    for (int32_t c = 0; c < layer_.channels; ++c) {
      if (counts[c] == 0 || channel_is_dead(scales[c])) continue;
      total += by_bias || !depthwise ? whole : mean_squares(region, c / multiplier, inputs);
    }
  }
  return total;
}

void RegionGradient::share(DirectionSums& directions) const {
  const int32_t columns = node_columns(layer_);
  int32_t* shares = workspace_.region_values;
  for (int32_t done = 0; done < columns; done += gradient_chunk) {
    const int32_t chunk = columns - done < gradient_chunk ? columns - done : gradient_chunk;
    directions.next(chunk);
    for (int32_t i = 0; i < chunk; ++i, ++shares) {
      if (*shares == 0) continue;
      const int64_t share = divide_rounded(int64_t{workspace_.sign_sums[i]} * (1 << share_bits), *shares);
      *shares = static_cast<int32_t>(share > INT32_MAX ? INT32_MAX : (share < -INT32_MAX ? -INT32_MAX : share));
    }
  }
}

}  // namespace pmt
