#include "core/layer.hpp"

#include "core/arithmetic.hpp"

namespace pmt {

Estimator choose_estimator(const Model& model, int32_t op, const TrainerOptions& options) {
  const OpRecord& record = model.op(op);
  const bool head = op == model.op_count() - 1 && has_linear_head(model) && options.int8_logits == 0;
  if (options.rule == EstimatorRule::weight) return Estimator::weight_perturbation;
  if (head) return Estimator::closed_form;
  if (options.rule == EstimatorRule::node) return Estimator::node_perturbation;
  if (options.train_weights == 0) return Estimator::weight_perturbation;
  const bool by_input = options.node_dimension == NodeDimension::input;
  const int32_t nodes = element_count(by_input ? model.input_of(record) : model.output_of(record));
  const bool node = static_cast<float>(nodes) < options.node_ratio * static_cast<float>(weight_count(model, record));
  return node ? Estimator::node_perturbation : Estimator::weight_perturbation;
}

int32_t bias_mu(const Model& model, const OpRecord& op, int32_t channel, int32_t mu) {
  const float weight_scale = model.weight_scales(op)[channel];
  if (channel_is_dead(weight_scale)) return 0;
  const float steps = static_cast<float>(mu) * model.output_of(op).scale / (model.input_of(op).scale * weight_scale);
  const int32_t rounded = round_saturating(steps);
  return rounded < 1 ? 1 : rounded;
}

ChannelWeights channel_weights(const Model& model, const OpRecord& op, int32_t channel) {
  const int32_t channels = model.output_of(op).channels;
  const int32_t count = weight_count(model, op) / channels;
  if (op.kind == OpKind::depthwise_conv2d) return {channel, channels, count};
  return {channel * count, 1, count};
}

}  // namespace pmt
