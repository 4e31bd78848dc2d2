#include "core/query.hpp"

#include "core/arithmetic.hpp"
#include "core/loss.hpp"

namespace pmt {
namespace {

constexpr int32_t largest_weight = 127;  // weights are symmetric

class Query {
 public:
  Query(const Estimation& estimation, const Workspace& workspace, const LayerRange& perturbed, const QueryId& id)
      : estimation_(estimation),
        model_(*estimation.network->model),
        workspace_(workspace),
        perturbed_(perturbed),
        id_(id),
        first_op_(estimation.layers[perturbed.first].op) {}

  void run() {
    for (int32_t i = first_op_; i < model_.op_count(); ++i) run_one(i);
  }

 private:
  const Layer* perturbed_layer(int32_t op) const {
    for (int32_t i = perturbed_.first; i <= perturbed_.last; ++i) {
      const Layer& layer = estimation_.layers[i];
      if (layer.op == op && layer.estimator != Estimator::closed_form) return &layer;
    }
    return nullptr;
  }

  const int8_t* input(const OpRecord& op, int which) const {
    if (op.input[which] == no_tensor) return nullptr;
    return query_input(model_, *estimation_.plan, workspace_, op.input[which], first_op_);
  }

  int8_t* output(const OpRecord& op) const { return workspace_.tensor(*estimation_.plan, Pass::query, op.output); }

  void run_one(int32_t index) {
    const OpRecord& op = model_.op(index);
    const Layer* layer = perturbed_layer(index);
    const bool node = layer != nullptr && layer->estimator == Estimator::node_perturbation;
    const bool is_last = index == model_.op_count() - 1;
    if (node && index == first_op_) {  // the clean output is in the main pass
      perturb_nodes(*layer, op, workspace_.tensor(*estimation_.plan, Pass::main, op.output));
    } else if (layer != nullptr && !node) {
      run_perturbed_weights(*layer, op, is_last && logits_from_accumulators());
    } else if (is_last && !node) {
      head_logits(*estimation_.network, workspace_, {{input(op, 0), input(op, 1)}, output(op)},
                  estimation_.options->int8_logits != 0);
      return;
    } else {
      run_op(*estimation_.network, index, input(op, 0), input(op, 1), output(op), workspace_.scratch);
      if (node) perturb_nodes(*layer, op, output(op));
    }
    const bool have_logits = !node && logits_from_accumulators();
    if (is_last && !have_logits) dequantise_logits(model_, output(op), workspace_.logits);
  }

  bool logits_from_accumulators() const { return estimation_.options->int8_logits == 0 && has_linear_head(model_); }

  // query output = clamp(nodes + mu * signs), row by row.
  void perturb_nodes(const Layer& layer, const OpRecord& op, const int8_t* nodes) {
    const TensorRecord& out = model_.output_of(op);
    const int32_t row = out.width * out.channels;
    SignStream stream(estimation_.options->generator,
                      perturbation_stream(estimation_, layer, id_, Purpose::node_signs));
    int8_t* perturbed = output(op);
    for (int32_t y = 0; y < out.height; ++y) {
      stream.next(row, workspace_.signs);
      perturb(nodes + y * row, workspace_.signs, row, estimation_.options->mu_node, op.clamp_min, op.clamp_max,
              perturbed + y * row);
    }
  }

  void perturb_bias(const Layer& layer, const OpRecord& op, SignStream& stream, int32_t begin, int32_t end) {
    if (estimation_.options->train_bias != 0) stream.next(end - begin, workspace_.signs);
    for (int32_t c = begin; c < end; ++c) {
      int64_t value = layer.bias[c];
      if (estimation_.options->train_bias != 0) {
        value +=
            bias_mu(model_, op, c, estimation_.options->mu_weight) * static_cast<int64_t>(workspace_.signs[c - begin]);
      }
      value = value > INT32_MAX ? INT32_MAX : (value < INT32_MIN ? INT32_MIN : value);
      workspace_.bias_tile[c - begin] = static_cast<int32_t>(value);
    }
  }

  void run_perturbed_weights(const Layer& layer, const OpRecord& op, bool to_logits) {
    const Network& network = *estimation_.network;
    const int32_t taps = layer.weight_count / layer.channels;
    const int32_t tile = weight_tile_channels(model_, layer, *estimation_.options);
    const Generator generator = estimation_.options->generator;
    SignStream weights(generator, perturbation_stream(estimation_, layer, id_, Purpose::weight_signs));
    SignStream biases(generator, perturbation_stream(estimation_, layer, id_, Purpose::bias_signs));
    for (int32_t begin = 0; begin < layer.channels; begin += tile) {
      const int32_t end = begin + tile < layer.channels ? begin + tile : layer.channels;
      const int32_t count = (end - begin) * taps;
      weights.next(count, workspace_.signs);
      perturb(layer.weights + begin * taps, workspace_.signs, count, estimation_.options->mu_weight, -largest_weight,
              largest_weight, workspace_.weight_tile);
      perturb_bias(layer, op, biases, begin, end);
      const Parameters parameters = {workspace_.weight_tile, workspace_.bias_tile};
      if (to_logits) {
        run_logits(network, input(op, 0), parameters, begin, end, workspace_.logits);
      } else {
        run_layer(network, layer.op, input(op, 0), output(op), parameters, begin, end, workspace_.scratch);
      }
    }
  }

  const Estimation& estimation_;
  const Model& model_;
  const Workspace& workspace_;
  const LayerRange perturbed_;
  const QueryId id_;
  const int32_t first_op_;
};

}  // namespace

StreamId perturbation_stream(const Estimation& estimation, const Layer& layer, const QueryId& id, Purpose purpose) {
  const TrainerOptions& options = *estimation.options;
  const bool shared = options.sharing == Sharing::batch && layer.estimator == Estimator::weight_perturbation;
  return {options.seed, estimation.step, static_cast<uint32_t>(layer.op), id.query, shared ? 0u : id.sample, purpose};
}

int32_t query_loss(const Estimation& estimation, const Workspace& workspace, const LayerRange& perturbed,
                   const QueryId& id, int32_t label) {
  Query(estimation, workspace, perturbed, id).run();
  return cross_entropy(workspace.logits, estimation.network->model->classes(), label);
}

}  // namespace pmt
