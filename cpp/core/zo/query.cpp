#include "core/zo/query.hpp"

#include "core/base/arithmetic.hpp"
#include "core/net/stream_run.hpp"
#include "core/zo/direction.hpp"
#include "core/zo/estimated.hpp"

namespace pmt {
namespace {

// A node that a clamp holds does not feel its channel's weights and bias: it stays where it is.
void keep_free(const int8_t* nodes, int32_t low, int32_t high, int32_t count, int8_t* signs) {
  const auto first = static_cast<int8_t>(low), last = static_cast<int8_t>(high);
  for (int32_t i = 0; i < count; ++i) signs[i] = nodes[i] > first && nodes[i] < last ? signs[i] : int8_t{0};
}

class Queries {
 public:
  Queries(const StepContext& context, const Workspace& workspace, const LayerRange& perturbed,
          const QueryBatch& queries)
      : context_(context),
        workspace_(workspace),
        perturbed_(perturbed),
        queries_(queries),
        first_op_(context.plan->query_start(context.layers[perturbed.first].op)) {}

  void run() {
    for (int32_t i = first_op_; i < model().op_count(); i = plan().segment_end(i) + 1) {
      if (plan().streams(i)) {
        run_segment(i, plan().segment_end(i));
      } else {
        run_one(i);
      }
    }
  }

 private:
  const Network& network() const { return *context_.network; }
  const Model& model() const { return context_.model(); }
  const Plan& plan() const { return *context_.plan; }
  const TrainerOptions& options() const { return *context_.options; }
  int8_t* tile() const { return workspace_.tile(plan()); }  // of perturbed weights

  const Layer* perturbed_layer(int32_t op) const {
    for (int32_t i = perturbed_.first; i <= perturbed_.last; ++i) {
      const Layer& layer = context_.layers[i];
      if (layer.op == op && !is_estimated(layer, Estimator::closed_form)) return &layer;
    }
    return nullptr;
  }

  StreamPlace place() const { return {Pass::query, first_op_}; }
  uint8_t* scratch(int32_t op) const { return workspace_.scratch_of(plan(), Pass::query, op); }

  // Not inlined: its frame would lie on the stack under that of a segment.
  __attribute__((noinline)) void run_one(int32_t index) {
    const OpRecord& op = model().op(index);
    const Layer* layer = perturbed_layer(index);
    const OpImages images = query_images(model(), plan(), workspace_, first_op_, queries_.count, index);
    const bool node = layer != nullptr && perturbs_nodes(*layer);
    const bool is_last = index == model().op_count() - 1;
    if (node && index == first_op_) {  // the clean output is in the main pass
      perturb_nodes(*layer, op, {workspace_.tensor(plan(), Pass::main, op.output), 0}, images);
    } else if (layer != nullptr && is_estimated(*layer, Estimator::weight_perturbation)) {
      run_perturbed_weights(*layer, op, images, is_last && has_linear_head(model()));
    } else if (is_last && !node) {
      head_logits(network(), workspace_, images, false, scratch(index));
      return;
    } else {
      run_op(network(), index, images, scratch(index));
      if (node) perturb_nodes(*layer, op, {images.output, images.output_stride}, images);
    }
    const bool have_logits = !node && has_linear_head(model());
    if (is_last && !have_logits) dequantize_logits(model(), images, workspace_.logits);
  }

  // A segment of line buffers, in which one layer at most is perturbed.
  void run_segment(int32_t begin, int32_t end) {
    const Layer* layer = nullptr;
    for (int32_t i = begin; i <= end && layer == nullptr; ++i) layer = perturbed_layer(i);
    if (layer == nullptr) {
      run_stream(model(), plan(), workspace_, place(), begin, end,
                 [&](int32_t op, const OpImages& rows) { run_op(network(), op, rows, scratch(op)); });
    } else if (perturbs_nodes(*layer)) {
      NodeSigns signs = node_signs(*layer, 0);
      run_stream(model(), plan(), workspace_, place(), begin, end, [&](int32_t op, const OpImages& rows) {
        run_op(network(), op, rows, scratch(op));
        if (op != layer->op) return;
        const Shape& out = rows.shape.out;
        perturb_run(*layer, model().op(op), signs, rows.output, out.height * out.width * out.channels, rows.output);
      });
    } else if (is_estimated(*layer, Estimator::weight_perturbation)) {
      Direction weights = direction(*layer, 0, Purpose::weight_signs);
      Direction biases = direction(*layer, 0, Purpose::bias_signs);
      const LayerInput perturbed = perturb_tile(*layer, model().op(layer->op), weights, biases, 0, layer->channels);
      run_stream(model(), plan(), workspace_, place(), begin, end, [&](int32_t op, const OpImages& rows) {
        if (op == layer->op) {
          run_layer(network(), op, rows, perturbed, 0, layer->channels, scratch(op));
        } else {
          run_op(network(), op, rows, scratch(op));
        }
      });
    }
  }

  QueryId id_of(int32_t query) const {
    return {static_cast<uint32_t>(queries_.first + query), static_cast<uint32_t>(queries_.sample.index)};
  }

  Direction direction(const Layer& layer, int32_t query, Purpose purpose) const {
    return {context_, layer, id_of(query), purpose};
  }

  NodeSigns node_signs(const Layer& layer, int32_t query) const { return {context_, workspace_, layer, id_of(query)}; }

  struct Nodes {
    const int8_t* first;
    int32_t stride;  // from a query to the next
  };

  // query output = clamp(nodes + mu * signs).
  void perturb_nodes(const Layer& layer, const OpRecord& op, const Nodes& nodes, const OpImages& images) {
    const int32_t count = element_count(model().output_of(op));
    for (int32_t i = 0; i < images.images; ++i) {
      NodeSigns signs = node_signs(layer, i);
      const int8_t* clean = nodes.first + i * nodes.stride;
      int8_t* perturbed = images.output + i * images.output_stride;
      perturb_run(layer, op, signs, clean, count, perturbed);
    }
  }

  bool moves_free_nodes(const Layer& layer) const {
    return is_estimated(layer, Estimator::pooled_perturbation) || options().nodes == PerturbedNodes::free;
  }

  // The next `count` nodes.
  void perturb_run(const Layer& layer, const OpRecord& op, NodeSigns& signs, const int8_t* clean, int32_t count,
                   int8_t* perturbed) {
    for (int32_t done = 0; done < count; done += node_chunk) {
      const int32_t chunk = count - done < node_chunk ? count - done : node_chunk;
      signs.next(context_.kernels(), chunk, workspace_.signs);
      if (moves_free_nodes(layer)) {
        keep_free(clean + done, op.clamp_min, op.clamp_max, chunk, workspace_.signs);
      }
      context_.kernels().perturb(clean + done, workspace_.signs, chunk, layer.mu_node, op.clamp_min, op.clamp_max,
                                 perturbed + done);
    }
  }

  void perturb_bias(const Layer& layer, Direction& direction, int32_t begin, int32_t end) {
    if (options().train_bias != 0) direction.next(context_.kernels(), end - begin, workspace_.signs);
    for (int32_t c = begin; c < end; ++c) {
      int64_t value = layer.bias[c];
      if (options().train_bias != 0) {
        value += bias_mu(model(), layer, options(), c) * static_cast<int64_t>(workspace_.signs[c - begin]);
      }
      workspace_.bias_tile[c - begin] = saturated(value);
    }
  }

  void perturb_weights(const Layer& layer, Direction& direction, int32_t first, int32_t count) {
    for (int32_t done = 0; done < count; done += node_chunk) {
      const int32_t chunk = count - done < node_chunk ? count - done : node_chunk;
      direction.next(context_.kernels(), chunk, workspace_.signs);
      context_.kernels().perturb(layer.weights + first + done, workspace_.signs, chunk, layer.mu_weight,
                                 -largest_weight, largest_weight, tile() + done);
    }
  }

  // The perturbed weights and biases of channels begin .. end-1.
  LayerInput perturb_tile(const Layer& layer, const OpRecord& op, Direction& weights, Direction& biases, int32_t begin,
                          int32_t end) {
    const Kernels& kernels = context_.kernels();
    if (options().train_weights == 0) {  // a tile is all the channels
      perturb_bias(layer, biases, begin, end);
      const LayerInput own = layer_input(network(), layer.op);
      return {own.weights, workspace_.bias_tile, own.packed};
    }
    const int32_t taps = layer.weight_count / layer.channels;
    const int32_t count = (end - begin) * taps;
    if (packs(kernels)) {
      weights.next(kernels, count, workspace_.signs);
      kernels.pack({op_shape(model(), op), model().input_of(op).zero_point, layer.weights, workspace_.signs,
                    layer.mu_weight, tile()});
      perturb_bias(layer, biases, begin, end);
      return {nullptr, workspace_.bias_tile, tile()};
    }
    perturb_weights(layer, weights, begin * taps, count);
    perturb_bias(layer, biases, begin, end);
    return {tile(), workspace_.bias_tile, nullptr};
  }

  void run_perturbed_weights(const Layer& layer, const OpRecord& op, const OpImages& images, bool to_logits) {
    const int32_t tile = weight_tile_channels(network(), plan(), layer, options());
    for (int32_t i = 0; i < images.images; ++i) {
      Direction weights = direction(layer, i, Purpose::weight_signs);
      Direction biases = direction(layer, i, Purpose::bias_signs);
      OpImages image = images;
      image.images = 1;
      image.input[0] += i * images.input_stride[0];
      image.output += i * images.output_stride;
      for (int32_t begin = 0; begin < layer.channels; begin += tile) {
        const int32_t end = begin + tile < layer.channels ? begin + tile : layer.channels;
        const LayerInput parameters = perturb_tile(layer, op, weights, biases, begin, end);
        if (to_logits) {
          run_logits(network(), image, parameters, begin, end, scratch(layer.op),
                     workspace_.logits + i * model().classes());
        } else {
          run_layer(network(), layer.op, image, parameters, begin, end, scratch(layer.op));
        }
      }
    }
  }

  const StepContext& context_;
  const Workspace& workspace_;
  const LayerRange perturbed_;
  const QueryBatch queries_;
  const int32_t first_op_;
};

}  // namespace

void query_logits(const StepContext& context, const Workspace& workspace, const LayerRange& perturbed,
                  const QueryBatch& queries, int32_t row) {
  Workspace rows = workspace;
  rows.logits += int64_t{row} * context.model().classes();
  Queries(context, rows, perturbed, queries).run();
}

}  // namespace pmt
