#include "core/zo/gradient.hpp"

#include "core/base/arithmetic.hpp"
#include "core/kernels/patch.hpp"
#include "core/zo/estimated.hpp"

namespace pmt {
namespace {

// Adds `runs` runs of sums, each of `width` in the directions' order, of which begin .. end-1 count.
void add_direction_sums(DirectionSums& directions, const Workspace& workspace, int32_t runs, int32_t width,
                        int32_t begin, int32_t end, int64_t* sums) {
  for (int32_t run = 0; run < runs; ++run) {
    directions.skip(begin);
    for (int32_t done = begin; done < end; done += gradient_chunk) {
      const int32_t chunk = end - done < gradient_chunk ? end - done : gradient_chunk;
      directions.next(chunk);
      for (int32_t i = 0; i < chunk; ++i) sums[i] += workspace.sign_sums[i];
      sums += chunk;
    }
    directions.skip(width - end);
  }
}

// The window of a layer over one position of `rows`.
Window window_of(const LayerRows& rows) {
  return rows.shape.kind == OpKind::fully_connected ? Window{1, 1, 1, 1, 0, 0} : rows.shape.window;
}

Shape input_shape(const LayerRows& rows) {
  const Shape& in = rows.shape.in;
  return rows.shape.kind == OpKind::fully_connected ? Shape{1, 1, in.height * in.width * in.channels} : in;
}

// A depthwise layer's gradient at one position; padding adds nothing.
void add_depthwise_product(const LayerRows& rows, int32_t zero_point, int32_t y, int32_t x, const int32_t* gradient,
                           const GradientSums& sums, int32_t channels) {
  const Shape& in = rows.shape.in;
  const Window& window = rows.shape.window;
  const int32_t multiplier = rows.shape.out.channels / in.channels;
  const int32_t top = y * window.stride_h - window.pad_top, left = x * window.stride_w - window.pad_left;
  int64_t* weights = sums.weights;
  for (int32_t ky = 0; ky < window.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < window.kernel_w; ++kx, weights += channels) {
      const int32_t row = top + ky, column = left + kx;
      if (row < 0 || row >= in.height || column < 0 || column >= in.width) continue;
      const int8_t* pixel = rows.input + (row * in.width + column) * in.channels;
      if (multiplier == 1) {
        pixel += sums.begin;
        for (int32_t c = 0; c < channels; ++c)
          weights[c] += static_cast<int64_t>(gradient[c]) * (pixel[c] - zero_point);
      } else {
        for (int32_t c = 0; c < channels; ++c) {
          weights[c] += static_cast<int64_t>(gradient[c]) * (pixel[(sums.begin + c) / multiplier] - zero_point);
        }
      }
    }
  }
}

// Adds gradient[position][channel] * patch[position] to the weights of the sums' channels, for positions
// begin .. end-1 of row y.
void add_outer_products(const Network& network, const Layer& layer, const LayerRows& rows, int32_t y, int32_t begin,
                        int32_t end, const int32_t* gradient, int16_t* patches, const GradientSums& sums) {
  if (sums.weights == nullptr) return;
  const int32_t zero_point = network.model->input_of(network.model->op(layer.op)).zero_point;
  const int32_t channels = sums.channels(layer);
  if (rows.shape.kind == OpKind::depthwise_conv2d) {
    for (int32_t x = begin; x < end; ++x, gradient += channels) {
      add_depthwise_product(rows, zero_point, y, x, gradient, sums, channels);
    }
    return;
  }
  const int32_t taps = layer.weight_count / layer.channels;
  const int32_t at_once = network.kernels->outer_positions;
  for (int32_t x = begin; x < end; x += at_once) {
    const int32_t positions = end - x < at_once ? end - x : at_once;
    for (int32_t p = 0; p < positions; ++p) {
      gather_patch(rows.input, input_shape(rows), window_of(rows), zero_point, y, x + p, patches + p * taps);
    }
    network.kernels->outer_product(
        {gradient + (x - begin) * channels, patches, positions, channels, taps, sums.weights});
  }
}

// Keeps the sums' channels of `positions` nodes' gradients, which have all channels, one after another.
void keep_channels(const Layer& layer, const GradientSums& sums, int32_t positions, int32_t* gradient) {
  const int32_t channels = sums.channels(layer);
  if (channels == layer.channels) return;
  for (int32_t p = 0; p < positions; ++p) {
    for (int32_t c = 0; c < channels; ++c) gradient[p * channels + c] = gradient[p * layer.channels + sums.begin + c];
  }
}

}  // namespace

ChannelWeights GradientSums::of(const Model& model, const Layer& layer, int32_t channel) const {
  const int32_t taps = layer.weight_count / layer.channels;
  if (model.op(layer.op).kind == OpKind::depthwise_conv2d) return {channel - begin, channels(layer), taps};
  return {(channel - begin) * taps, 1, taps};
}

LayerRows main_rows(const StepContext& context, const Workspace& workspace, const Layer& layer) {
  const Model& model = context.model();
  const OpRecord& op = model.op(layer.op);
  return {workspace.tensor(*context.plan, Pass::main, op.input[0]),
          workspace.tensor(*context.plan, Pass::main, op.output), op_shape(model, op)};
}

void add_weight_gradient(const StepContext& context, const Workspace& workspace, const Layer& layer, uint32_t sample,
                         const int32_t* differences, const GradientSums& sums) {
  DirectionSums directions(context, workspace, layer, sample, differences);
  const int32_t begin = sums.begin, end = begin + sums.channels(layer);
  if (sums.weights != nullptr) {
    const int32_t taps = layer.weight_count / layer.channels;
    const bool strided = context.model().op(layer.op).kind == OpKind::depthwise_conv2d;
    directions.open(Purpose::weight_signs);
    if (strided && end - begin < layer.channels) {
      add_direction_sums(directions, workspace, taps, layer.channels, begin, end, sums.weights);
    } else {
      add_direction_sums(directions, workspace, 1, layer.weight_count, begin * taps, end * taps, sums.weights);
    }
  }
  if (context.options->train_bias == 0) return;
  // The signs of a bias were drawn as one run over all channels, as they are here.
  directions.open(Purpose::bias_signs);
  add_direction_sums(directions, workspace, 1, layer.channels, begin, end, sums.bias);
}

PooledGradient::PooledGradient(const StepContext& context, const Workspace& workspace, const Layer& layer)
    : context_(context), workspace_(workspace), layer_(layer) {
  __builtin_memset(workspace.channel_values, 0, static_cast<uint32_t>(layer.channels) * sizeof(int32_t));
}

void PooledGradient::count(const LayerRows& rows) {
  const OpRecord& op = context_.model().op(layer_.op);
  const int32_t positions = rows.shape.out.height * rows.shape.out.width;
  const int8_t* nodes = rows.output;
  for (int32_t p = 0; p < positions; ++p, nodes += layer_.channels) {
    for (int32_t c = 0; c < layer_.channels; ++c) {
      workspace_.channel_values[c] += nodes[c] > op.clamp_min && nodes[c] < op.clamp_max ? 1 : 0;
    }
  }
}

void PooledGradient::share(DirectionSums& directions) const {
  int32_t* shares = workspace_.channel_values;
  for (int32_t done = 0; done < layer_.channels; done += gradient_chunk) {
    const int32_t chunk = layer_.channels - done < gradient_chunk ? layer_.channels - done : gradient_chunk;
    directions.next(chunk);
    for (int32_t i = 0; i < chunk; ++i, ++shares) {
      if (*shares == 0) continue;
      const int64_t share = divide_rounded(int64_t{workspace_.sign_sums[i]} * (1 << share_bits), *shares);
      *shares = static_cast<int32_t>(share > INT32_MAX ? INT32_MAX : (share < -INT32_MAX ? -INT32_MAX : share));
    }
  }
}

NodeGradient::NodeGradient(const StepContext& context, const Workspace& workspace, const Layer& layer,
                           DirectionSums& directions, const GradientSums& sums)
    : context_(context), workspace_(workspace), layer_(layer), directions_(directions), sums_(sums) {}

void NodeGradient::add(const LayerRows& rows) {
  const int32_t at_once = node_positions(*context_.network, *context_.plan, layer_);
  const int32_t width = rows.shape.out.width;
  for (int32_t y = 0; y < rows.shape.out.height; ++y) {
    for (int32_t x = 0; x < width; x += at_once) add_positions(rows, y, x, x + at_once < width ? x + at_once : width);
  }
}

// Sums of the nodes of positions begin .. end-1 of a row.
void NodeGradient::node_sums(int32_t begin, int32_t end) {
  if (!is_estimated(layer_, Estimator::pooled_perturbation)) {
    directions_.next((end - begin) * layer_.channels);
    return;
  }
  const auto bytes = static_cast<uint32_t>(layer_.channels) * sizeof(int32_t);
  int32_t* gradient = workspace_.sign_sums;
  for (int32_t x = begin; x < end; ++x, gradient += layer_.channels) {
    __builtin_memcpy(gradient, workspace_.channel_values, bytes);
  }
}

void NodeGradient::add_positions(const LayerRows& rows, int32_t y, int32_t begin, int32_t end) {
  const OpRecord& op = context_.model().op(layer_.op);
  const int32_t nodes = (end - begin) * layer_.channels;
  const int8_t* clean = rows.output + (y * rows.shape.out.width + begin) * layer_.channels;
  int32_t* gradient = workspace_.sign_sums;
  node_sums(begin, end);
  int32_t held = 0;
  for (int32_t i = 0; i < nodes; ++i) {
    if (clean[i] > op.clamp_min && clean[i] < op.clamp_max) continue;
    gradient[i] = 0;
    ++held;
  }
  free_nodes_ += nodes - held;
  keep_channels(layer_, sums_, end - begin, gradient);
  auto* patches = reinterpret_cast<int16_t*>(workspace_.scratch_of(*context_.plan, Pass::main, layer_.op));
  add_outer_products(*context_.network, layer_, rows, y, begin, end, gradient, patches, sums_);
  const int32_t channels = sums_.channels(layer_);
  for (int32_t x = begin; x < end; ++x, gradient += channels) {
    for (int32_t c = 0; c < channels; ++c) sums_.bias[c] += gradient[c];
  }
}

void head_gradient(const StepContext& context, const Workspace& workspace, const ScoredSample& sample,
                   int32_t* gradient) {
  main_logits(*context.network, *context.plan, workspace, 1, false);
  loss_gradient(context, sample, workspace.logits, gradient);
}

void add_head_product(const StepContext& context, const Workspace& workspace, const Layer& layer,
                      const int32_t* gradient, const GradientSums& sums) {
  auto* patches = reinterpret_cast<int16_t*>(workspace.scratch_of(*context.plan, Pass::main, layer.op));
  const LayerRows rows = main_rows(context, workspace, layer);
  add_outer_products(*context.network, layer, rows, 0, 0, 1, gradient + sums.begin, patches, sums);
  for (int32_t c = 0; c < sums.channels(layer); ++c) sums.bias[c] += gradient[sums.begin + c];
}

}  // namespace pmt
