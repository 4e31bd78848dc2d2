#include "core/gradient.hpp"

#include "core/direction_sums.hpp"
#include "core/kernels/patch.hpp"
#include "core/loss.hpp"

namespace pmt {
namespace {

void add_direction_sums(DirectionSums& directions, const Workspace& workspace, int32_t count, int64_t* sums) {
  for (int32_t done = 0; done < count; done += gradient_chunk) {
    const int32_t chunk = count - done < gradient_chunk ? count - done : gradient_chunk;
    directions.next(chunk);
    for (int32_t i = 0; i < chunk; ++i) sums[done + i] += workspace.sign_sums[i];
  }
}

// Each difference belongs to one weight or bias.
void add_coordinates(const Estimation& estimation, const Workspace& workspace, const Layer& layer,
                     const int32_t* differences, const GradientSums& sums) {
  const int32_t queries = query_count(estimation, layer);
  for (int32_t q = 0; q < queries; ++q) {
    const Coordinate moved = coordinate_of(estimation, workspace, layer, q);
    int64_t* sum = moved.purpose == Purpose::bias_signs ? sums.bias : sums.weights;
    sum[moved.index] += static_cast<int64_t>(moved.sign) * differences[q];
  }
}

struct Row {
  int32_t y, begin, end;  // output positions begin .. end-1 of row y
};

void add_depthwise_product(const Model& model, const Layer& layer, const OpRecord& op, const int32_t* gradient,
                           const int16_t* patch, const GradientSums& sums) {
  const int32_t in_channels = model.input_of(op).channels;
  const int32_t taps = layer.weight_count / layer.channels;
  const int32_t multiplier = layer.channels / in_channels;
  for (int32_t k = 0; k < taps; ++k) {
    for (int32_t c = 0; c < layer.channels; ++c) {
      sums.weights[k * layer.channels + c] +=
          static_cast<int64_t>(gradient[c]) * patch[k * in_channels + c / multiplier];
    }
  }
}

// Adds gradient[position][c] * patch[position] to the weights of every channel c.
void add_outer_products(const Network& network, const Layer& layer, const int8_t* input, const Row& row,
                        const int32_t* gradient, int16_t* patches, const GradientSums& sums) {
  const Model& model = *network.model;
  if (sums.weights == nullptr) return;
  const OpRecord& op = model.op(layer.op);
  const TensorRecord& in = model.input_of(op);
  const bool flat = op.kind == OpKind::fully_connected;
  const Shape shape = flat ? Shape{1, 1, element_count(in)} : Shape{in.height, in.width, in.channels};
  const Window window = flat ? Window{1, 1, 1, 1, 0, 0}
                             : Window{op.kernel_h, op.kernel_w, op.stride_h, op.stride_w, op.pad_top, op.pad_left};
  const int32_t taps = layer.weight_count / layer.channels;
  const bool depthwise = op.kind == OpKind::depthwise_conv2d;
  const int32_t at_once = depthwise ? 1 : network.kernels->outer_positions;
  for (int32_t x = row.begin; x < row.end; x += at_once) {
    const int32_t positions = row.end - x < at_once ? row.end - x : at_once;
    for (int32_t p = 0; p < positions; ++p) {
      gather_patch(input, shape, window, in.zero_point, row.y, x + p, patches + p * taps);
    }
    const int32_t* first = gradient + (x - row.begin) * layer.channels;
    if (depthwise) {
      add_depthwise_product(model, layer, op, first, patches, sums);
    } else {
      network.kernels->outer_product({first, patches, positions, layer.channels, taps, sums.weights});
    }
  }
}

}  // namespace

void add_weight_gradient(const Estimation& estimation, const Workspace& workspace, const Layer& layer, uint32_t sample,
                         const int32_t* differences, const GradientSums& sums) {
  if (estimation.options->directions == Directions::coordinate) {
    add_coordinates(estimation, workspace, layer, differences, sums);
    return;
  }
  DirectionSums directions(estimation, workspace, layer, sample, differences);
  if (sums.weights != nullptr) {
    directions.open(Purpose::weight_signs);
    add_direction_sums(directions, workspace, layer.weight_count, sums.weights);
  }
  if (estimation.options->train_bias == 0) return;
  // The signs of a bias were drawn as one run over all channels, as they are here.
  directions.open(Purpose::bias_signs);
  add_direction_sums(directions, workspace, layer.channels, sums.bias);
}

void add_node_gradient(const Estimation& estimation, const Workspace& workspace, const Layer& layer, uint32_t sample,
                       const int32_t* differences, const GradientSums& sums) {
  const Model& model = *estimation.network->model;
  const OpRecord& op = model.op(layer.op);
  const TensorRecord& out = model.output_of(op);
  const int8_t* input = workspace.tensor(*estimation.plan, Pass::main, op.input[0]);
  const int8_t* nodes = workspace.tensor(*estimation.plan, Pass::main, op.output);
  auto* patches = reinterpret_cast<int16_t*>(workspace.scratch);
  const int32_t row = out.width * out.channels;
  DirectionSums directions(estimation, workspace, layer, sample, differences);
  directions.open(Purpose::node_signs);
  for (int32_t y = 0; y < out.height; ++y) {
    directions.next(row);
    for (int32_t i = 0; i < row; ++i) {
      const int8_t node = nodes[y * row + i];
      if (node <= op.clamp_min || node >= op.clamp_max) workspace.sign_sums[i] = 0;
    }
    add_outer_products(*estimation.network, layer, input, {y, 0, out.width}, workspace.sign_sums, patches, sums);
    for (int32_t x = 0; x < out.width; ++x) {
      for (int32_t c = 0; c < out.channels; ++c) sums.bias[c] += workspace.sign_sums[x * out.channels + c];
    }
  }
}

void add_head_gradient(const Estimation& estimation, const Workspace& workspace, const Layer& layer, int32_t label,
                       const GradientSums& sums) {
  const Network& network = *estimation.network;
  const Model& model = *network.model;
  const OpRecord& op = model.op(layer.op);
  main_logits(network, *estimation.plan, workspace, 1, false);
  cross_entropy_gradient(workspace.logits, model.classes(), label, workspace.head_gradient);
  const int8_t* input = workspace.tensor(*estimation.plan, Pass::main, op.input[0]);
  auto* patches = reinterpret_cast<int16_t*>(workspace.scratch);
  add_outer_products(network, layer, input, {0, 0, 1}, workspace.head_gradient, patches, sums);
  for (int32_t c = 0; c < layer.channels; ++c) sums.bias[c] += workspace.head_gradient[c];
}

}  // namespace pmt
