#include "core/zo/region_inputs.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

// A channel's patches in one region, added up over the nodes that no clamp holds.
class PatchSum {
 public:
  PatchSum(const StepContext& context, const Layer& layer, const LayerRows& rows, int32_t* sums)
      : op_(context.model().op(layer.op)),
        rows_(rows),
        regions_(regions_of(context.model(), layer)),
        zero_point_(context.model().input_of(op_).zero_point),
        channels_(layer.channels),
        taps_(patch_taps(layer)),
        sums_(sums) {}

  // Returns the number of nodes that no clamp holds.
  int32_t add(int32_t row, int32_t column, int32_t channel) {
    for (int32_t k = 0; k < taps_; ++k) sums_[k] = 0;
    int32_t nodes = 0;
    for (int32_t y = regions_.first_row(row); y < regions_.first_row(row + 1); ++y) {
      for (int32_t x = regions_.first_column(column); x < regions_.first_column(column + 1); ++x) {
        const int8_t node = rows_.output[(y * regions_.width + x) * channels_ + channel];
        if (node <= op_.clamp_min || node >= op_.clamp_max) continue;
        add_patch(y, x, channel);
        ++nodes;
      }
    }
    return nodes;
  }

  float squares() const {
    int64_t total = 0;
    for (int32_t k = 0; k < taps_; ++k) total += int64_t{sums_[k]} * sums_[k];
    return to_float(total);
  }

 private:
  void add_patch(int32_t y, int32_t x, int32_t channel) {
    const int32_t inputs = rows_.shape.in.channels;
    const bool depthwise = op_.kind == OpKind::depthwise_conv2d;
    const int32_t first = depthwise ? channel / (channels_ / inputs) : 0, count = depthwise ? 1 : inputs;
    for_window(rows_, y, x, [&](const int8_t* pixel, int32_t place) {
      for (int32_t k = 0; k < count; ++k) sums_[place * count + k] += pixel[first + k] - zero_point_;
    });
  }

  const OpRecord& op_;
  const LayerRows& rows_;
  const Regions regions_;
  const int32_t zero_point_, channels_, taps_;
  int32_t* const sums_;
};

}  // namespace

RegionInputs region_inputs(const StepContext& context, const Layer& layer, const LayerRows& rows, int32_t* sums) {
  const float* scales = context.model().weight_scales(context.model().op(layer.op));
  PatchSum patches(context, layer, rows, sums);
  RegionInputs inputs = {0.0f, 0.0f};
  for (int32_t row = 0; row < layer.region_rows; ++row) {
    for (int32_t column = 0; column < layer.region_columns; ++column) {
      for (int32_t c = 0; c < layer.channels; ++c) {
        const int32_t nodes = channel_is_dead(scales[c]) ? 0 : patches.add(row, column, c);
        if (nodes == 0) continue;
        inputs.mean_squares += patches.squares() / (static_cast<float>(nodes) * static_cast<float>(nodes));
        inputs.columns += 1.0f;
      }
    }
  }
  return inputs;
}

}  // namespace pmt
