#include "core/zo/region_gradient.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

bool measures_noise(const TrainerOptions& options) {
  return options.gradient_norm_scaling == GradientNormScaling::measured;
}

bool is_depthwise(const StepContext& context, const Layer& layer) {
  return context.model().op(layer.op).kind == OpKind::depthwise_conv2d;
}

// Positions of a region.
int64_t area(const Regions& regions, int32_t region) {
  const int32_t row = region / regions.columns, column = region % regions.columns;
  const auto end = [](int32_t index, int32_t size, int32_t parts) { return ((index + 1) * size + parts - 1) / parts; };
  const int32_t height =
      end(row, regions.height, regions.rows) - (row == 0 ? 0 : end(row - 1, regions.height, regions.rows));
  const int32_t width = regions.column_end(column) - (column == 0 ? 0 : regions.column_end(column - 1));
  return int64_t{height} * width;
}

}  // namespace

RegionGradient::RegionGradient(const StepContext& context, const Workspace& workspace, const Layer& layer)
    : context_(context),
      workspace_(workspace),
      layer_(layer),
      regions_(regions_of(context.model(), layer)),
      patch_sums_(measures_noise(*context.options) ? workspace.region_values + node_columns(layer) : nullptr),
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
      const int32_t region = regions_.row_at(y_) * regions_.columns + regions_.column_at(x);
      int32_t* counts = workspace_.region_values + region * layer_.channels;
      for (int32_t c = 0; c < layer_.channels; ++c) {
        counts[c] += nodes[c] > op.clamp_min && nodes[c] < op.clamp_max ? 1 : 0;
      }
      if (patch_sums_ != nullptr) add_patch(rows, y, x, region);
    }
  }
}

void RegionGradient::add_patch(const LayerRows& rows, int32_t y, int32_t x, int32_t region) {
  const Shape& in = rows.shape.in;
  const bool flat = rows.shape.kind == OpKind::fully_connected;
  const Window window = flat ? Window{in.height, in.width, 1, 1, 0, 0} : rows.shape.window;
  const int32_t zero_point = context_.model().input_of(context_.model().op(layer_.op)).zero_point;
  const int32_t top = y * window.stride_h - window.pad_top, left = x * window.stride_w - window.pad_left;
  int32_t* sums = patch_sums_ + region * taps_;
  for (int32_t ky = 0; ky < window.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < window.kernel_w; ++kx, sums += in.channels) {
      const int32_t row = top + ky, column = left + kx;
      if (row < 0 || row >= in.height || column < 0 || column >= in.width) continue;
      const int8_t* pixel = rows.input + (row * in.width + column) * in.channels;
      for (int32_t c = 0; c < in.channels; ++c) sums[c] += pixel[c] - zero_point;
    }
  }
}

int64_t RegionGradient::factor_squares() const {
  const Model& model = context_.model();
  const float* scales = model.weight_scales(model.op(layer_.op));
  const int32_t inputs = model.input_of(model.op(layer_.op)).channels;
  const bool depthwise = is_depthwise(context_, layer_);
  const int32_t multiplier = depthwise ? layer_.channels / inputs : 1;
  int64_t total = 0;
  for (int32_t region = 0; region < regions_.count(); ++region) {
    const int32_t* counts = workspace_.region_values + region * layer_.channels;
    const int32_t* sums = patch_sums_ + region * taps_;
    const int64_t positions = area(regions_, region);
    const auto squares = [&](int32_t first, int32_t step) {
      int64_t sum = 0;
      for (int32_t k = first; k < taps_; k += step) sum += int64_t{sums[k]} * sums[k];
      return divide_rounded(sum, positions * positions);
    };
    const int64_t whole = depthwise ? 0 : squares(0, 1);
    for (int32_t c = 0; c < layer_.channels; ++c) {
      if (counts[c] == 0 || channel_is_dead(scales[c])) continue;
      total += context_.options->train_weights == 0 ? 1 : (depthwise ? squares(c / multiplier, inputs) : whole);
    }
  }
  return total;
}

void RegionGradient::share(uint32_t sample, const int32_t* differences) {
  DirectionSums directions(context_, workspace_, layer_, sample, differences);
  directions.open(Purpose::node_signs);
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
