#include "core/zo/shrinkage.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/direction.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

constexpr float largest_share = 2.0f;

// The squared inputs of one position: of all channels, or of every `step`-th one from `first` on.
int64_t position_squares(const LayerRows& rows, int32_t zero_point, int32_t y, int32_t x, int32_t first, int32_t step) {
  const int32_t channels = rows.shape.in.channels;
  int64_t sum = 0;
  for_window(rows, y, x, [&](const int8_t* pixel, int32_t) {
    for (int32_t c = first; c < channels; c += step) {
      const int32_t value = pixel[c] - zero_point;
      sum += value * value;
    }
  });
  return sum;
}

// Calls visit(channel) for every node of a position whose gradient is not lost.
template <typename Visit>
void for_free_nodes(const StepContext& context, const Layer& layer, const int8_t* nodes, const Visit& visit) {
  const Model& model = context.model();
  const OpRecord& op = model.op(layer.op);
  const float* scales = model.weight_scales(op);
  for (int32_t c = 0; c < layer.channels; ++c) {
    if (!channel_is_dead(scales[c]) && nodes[c] > op.clamp_min && nodes[c] < op.clamp_max) visit(c);
  }
}

float squares(const int64_t* sums, const ChannelWeights& at) {
  float total = 0.0f;
  for (int32_t k = 0; k < at.count; ++k) {
    const float sum = to_float(sums[at.first + k * at.stride]) / loss_one;
    total += sum * sum;
  }
  return total;
}

}  // namespace

int64_t difference_squares(const TrainerOptions& options, const int32_t* differences, int32_t queries) {
  const bool pairs = options.pairs == Pairs::antithetic;
  int64_t sum = 0;
  for (int32_t q = 0; q < queries; q += pairs ? 2 : 1) {
    const int64_t difference = int64_t{differences[q]} - (pairs ? differences[q + 1] : 0);
    sum += difference * difference;
  }
  return sum;
}

float direction_noise(const StepContext& context, const Layer& layer) {
  if (context.options->directions != Directions::hadamard) return 1.0f;
  return column_correlation(static_cast<uint32_t>(direction_count(context, layer)), column_count(context, layer));
}

int64_t free_input_squares(const StepContext& context, const Layer& layer, const LayerRows& rows) {
  const Model& model = context.model();
  const Shape& out = rows.shape.out;
  const bool depthwise = rows.shape.kind == OpKind::depthwise_conv2d;
  const int32_t multiplier = depthwise ? layer.channels / rows.shape.in.channels : 1;
  const int32_t zero_point = model.input_of(model.op(layer.op)).zero_point;
  int64_t sum = 0;
  for (int32_t p = 0; p < out.height * out.width; ++p) {
    const int32_t y = p / out.width, x = p % out.width;
    const int64_t whole = depthwise ? 0 : position_squares(rows, zero_point, y, x, 0, 1);
    for_free_nodes(context, layer, rows.output + p * layer.channels, [&](int32_t c) {
      sum += depthwise ? position_squares(rows, zero_point, y, x, c / multiplier, rows.shape.in.channels) : whole;
    });
  }
  return sum;
}

int64_t free_input_squares(const StepContext& context, const Workspace& workspace, const Layer& layer) {
  return free_input_squares(context, layer, main_rows(context, workspace, layer));
}

int64_t free_nodes(const StepContext& context, const Layer& layer, const LayerRows& rows) {
  int64_t count = 0;
  for (int32_t p = 0; p < rows.shape.out.height * rows.shape.out.width; ++p) {
    for_free_nodes(context, layer, rows.output + p * layer.channels, [&](int32_t) { ++count; });
  }
  return count;
}

float squared_norm(const StepContext& context, const Layer& layer, const GradientSums& sums, float before) {
  const Model& model = context.model();
  float total = before;
  for (int32_t c = sums.begin; c < sums.begin + sums.channels(layer); ++c) {
    if (channel_is_dead(model.weight_scales(model.op(layer.op))[c])) continue;
    total += sums.weights != nullptr ? squares(sums.weights, sums.of(model, layer, c))
                                     : squares(sums.bias, {c - sums.begin, 1, 1});
  }
  return total;
}

int32_t measured_elements(const StepContext& context, const Layer& layer) {
  const Model& model = context.model();
  const float* scales = model.weight_scales(model.op(layer.op));
  int32_t live = 0;
  for (int32_t c = 0; c < layer.channels; ++c) live += channel_is_dead(scales[c]) ? 0 : 1;
  if (context.options->train_weights == 0) return live;
  const int64_t active = active_weights(*context.options, layer);
  return static_cast<int32_t>(active * live / layer.channels);
}

float in_squared_losses(int64_t difference_squares) { return to_float(difference_squares) / (loss_one * loss_one); }

float smoothed_noise(float share, float noise, float norm, float memory, int32_t updates) {
  const float now = norm > 0.0f ? clamp(noise / norm, 0.0f, largest_share) : 1.0f;
  return updates == 0 ? now : memory * share + (1.0f - memory) * now;
}

}  // namespace pmt
