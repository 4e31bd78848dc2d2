#include "core/shrinkage.hpp"

#include "core/arithmetic.hpp"
#include "core/kernels/patch.hpp"
#include "core/loss.hpp"

namespace pmt {
namespace {

constexpr float largest_share = 2.0f;

int64_t patch_squares(const int16_t* patch, int32_t taps, int32_t stride) {
  int64_t sum = 0;
  for (int32_t k = 0; k < taps; ++k) sum += static_cast<int64_t>(patch[k * stride]) * patch[k * stride];
  return sum;
}

// Calls visit(position, channel) for every node whose gradient is not lost.
template <typename Visit>
void for_free_nodes(const Estimation& estimation, const Workspace& workspace, const Layer& layer, int32_t position,
                    const Visit& visit) {
  const Model& model = *estimation.network->model;
  const OpRecord& op = model.op(layer.op);
  const float* scales = model.weight_scales(op);
  const int8_t* nodes = workspace.tensor(*estimation.plan, Pass::main, op.output) + position * layer.channels;
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

int64_t difference_squares(const int32_t* differences, int32_t queries) {
  int64_t sum = 0;
  for (int32_t q = 0; q < queries; ++q) sum += static_cast<int64_t>(differences[q]) * differences[q];
  return sum;
}

int64_t free_input_squares(const Estimation& estimation, const Workspace& workspace, const Layer& layer) {
  const Model& model = *estimation.network->model;
  const OpRecord& op = model.op(layer.op);
  const OpShape shape = op_shape(model, op);
  const bool depthwise = op.kind == OpKind::depthwise_conv2d;
  const bool flat = op.kind == OpKind::fully_connected;
  const Shape in = flat ? Shape{1, 1, element_count(model.input_of(op))} : shape.in;
  const Window window = flat ? Window{1, 1, 1, 1, 0, 0} : shape.window;
  const int32_t width = flat ? 1 : model.output_of(op).width;
  const int32_t taps = layer.weight_count / layer.channels;
  const int8_t* input = workspace.tensor(*estimation.plan, Pass::main, op.input[0]);
  auto* patch = reinterpret_cast<int16_t*>(workspace.scratch);
  const int32_t multiplier = depthwise ? layer.channels / in.channels : 1;
  int64_t sum = 0;
  for (int32_t p = 0; p < layer.node_count / layer.channels; ++p) {
    gather_patch(input, in, window, model.input_of(op).zero_point, p / width, p % width, patch);
    const int64_t whole = depthwise ? 0 : patch_squares(patch, taps, 1);
    for_free_nodes(estimation, workspace, layer, p, [&](int32_t c) {
      sum += depthwise ? patch_squares(patch + c / multiplier, taps, in.channels) : whole;
    });
  }
  return sum;
}

int64_t free_nodes(const Estimation& estimation, const Workspace& workspace, const Layer& layer) {
  int64_t count = 0;
  for (int32_t p = 0; p < layer.node_count / layer.channels; ++p) {
    for_free_nodes(estimation, workspace, layer, p, [&](int32_t) { ++count; });
  }
  return count;
}

float squared_norm(const Estimation& estimation, const Layer& layer, const GradientSums& sums) {
  const Model& model = *estimation.network->model;
  const OpRecord& op = model.op(layer.op);
  float total = 0.0f;
  for (int32_t c = 0; c < layer.channels; ++c) {
    if (channel_is_dead(model.weight_scales(op)[c])) continue;
    total +=
        sums.weights != nullptr ? squares(sums.weights, channel_weights(model, op, c)) : squares(sums.bias, {c, 1, 1});
  }
  return total;
}

int32_t measured_elements(const Estimation& estimation, const Layer& layer) {
  const Model& model = *estimation.network->model;
  const float* scales = model.weight_scales(model.op(layer.op));
  int32_t live = 0;
  for (int32_t c = 0; c < layer.channels; ++c) live += channel_is_dead(scales[c]) ? 0 : 1;
  return estimation.options->train_weights != 0 ? live * (layer.weight_count / layer.channels) : live;
}

float in_squared_losses(int64_t difference_squares) { return to_float(difference_squares) / (loss_one * loss_one); }

float remember_noise(float share, float noise, float norm, float memory, int32_t updates) {
  const float now = norm > 0.0f ? clamp(noise / norm, 0.0f, largest_share) : 1.0f;
  return updates == 0 ? now : memory * share + (1.0f - memory) * now;
}

}  // namespace pmt
