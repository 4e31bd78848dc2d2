#include "core/zo/layer.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

namespace {

bool has_closed_form(const Model& model, int32_t op, const TrainerOptions& options) {
  return op == model.op_count() - 1 && has_linear_head(model) && has_gradient(options.loss);
}

}  // namespace

bool shares_perturbations(const TrainerOptions& options, Estimator estimator) {
  return options.sharing == Sharing::batch && estimator == Estimator::weight_perturbation;
}

Estimator choose_estimator(const Model& model, int32_t op, const TrainerOptions& options) {
  const OpRecord& record = model.op(op);
  if (options.rule == EstimatorRule::weight) return Estimator::weight_perturbation;
  if (has_closed_form(model, op, options)) return Estimator::closed_form;
  if (options.rule == EstimatorRule::node) return Estimator::node_perturbation;
  if (options.rule == EstimatorRule::pooled) return Estimator::pooled_perturbation;
  if (options.train_weights == 0) return Estimator::weight_perturbation;
  const bool by_input = options.node_dimension == NodeDimension::input;
  const int32_t nodes = element_count(by_input ? model.input_of(record) : model.output_of(record));
  const bool node = static_cast<float>(nodes) < options.node_ratio * static_cast<float>(weight_count(model, record));
  return node ? Estimator::node_perturbation : Estimator::weight_perturbation;
}

Layer make_layer(const Model& model, int32_t op, const TrainerOptions& options, const LayerStorage& storage) {
  const OpRecord& record = model.op(op);
  const TensorRecord& out = model.output_of(record);
  return {op,
          choose_estimator(model, op, options),
          weight_count(model, record),
          element_count(out),
          out.channels,
          storage.weights,
          storage.bias,
          options.queries,
          options.mu_weight,
          options.mu_node};
}

int32_t bias_mu(const Model& model, const OpRecord& op, int32_t channel, int32_t mu) {
  const float weight_scale = model.weight_scales(op)[channel];
  if (channel_is_dead(weight_scale)) return 0;
  const float steps = static_cast<float>(mu) * model.output_of(op).scale / (model.input_of(op).scale * weight_scale);
  const int32_t rounded = round_saturating(steps);
  return rounded < 1 ? 1 : rounded;
}

int32_t bias_mu(const Model& model, const Layer& layer, const TrainerOptions& options, int32_t channel) {
  const OpRecord& op = model.op(layer.op);
  if (options.mu_bias == 0) return bias_mu(model, op, channel, layer.mu_weight);
  return channel_is_dead(model.weight_scales(op)[channel]) ? 0 : options.mu_bias;
}

}  // namespace pmt
