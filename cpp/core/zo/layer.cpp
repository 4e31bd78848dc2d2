#include "core/zo/layer.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

namespace {

bool has_closed_form(const Model& model, int32_t op, const TrainerOptions& options) {
  return op == model.op_count() - 1 && has_linear_head(model) && options.int8_logits == 0 && has_gradient(options.loss);
}

bool inside(int32_t value, int32_t low, int32_t high) { return value >= low && value <= high; }

}  // namespace

bool shares_perturbations(const TrainerOptions& options, Estimator estimator) {
  const bool weights = estimator == Estimator::weight_perturbation;
  return options.sharing == Sharing::batch && weights && options.directions != Directions::coordinate;
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

LayerSettings default_settings(const Model& model, int32_t op, const TrainerOptions& options) {
  return {options.queries, static_cast<int16_t>(options.mu_weight), static_cast<int16_t>(options.mu_node),
          choose_estimator(model, op, options), options.regions};
}

Status check_settings(const Model& model, int32_t op, const TrainerOptions& options, const LayerSettings& settings) {
  const bool counted = options.directions == Directions::coordinate;
  const bool queries = options.scope == Scope::model_wise
                           ? settings.queries == options.queries
                           : inside(settings.queries, least_queries(options), most_queries);
  if (!queries && !counted) return {Code::layer_queries, op};
  if (options.pairs == Pairs::antithetic && settings.queries % 2 != 0) return {Code::layer_queries, op};
  if (!inside(settings.mu_weight, 1, largest_mu) || !inside(settings.mu_node, 1, largest_mu)) {
    return {Code::option_mu, op};
  }
  const bool known = static_cast<uint32_t>(settings.estimator) <= static_cast<uint32_t>(Estimator::pooled_perturbation);
  const bool exact = settings.estimator == Estimator::closed_form;
  if (!known || (exact && !has_closed_form(model, op, options))) return {Code::layer_estimator, op};
  if (!inside(settings.regions, 1, most_regions)) return {Code::layer_regions, op};
  return {};
}

Layer make_layer(const Model& model, int32_t op, const TrainerOptions& options, const LayerSettings& settings,
                 const LayerStorage& storage) {
  const OpRecord& record = model.op(op);
  const TensorRecord& out = model.output_of(record);
  Layer layer = {op,
                 settings.estimator,
                 weight_count(model, record),
                 element_count(out),
                 out.channels,
                 storage.weights,
                 storage.bias,
                 settings.queries,
                 settings.mu_weight,
                 settings.mu_node,
                 1,
                 1,
                 options.mu_per_channel != 0 ? mean_weight_scale(model, record) : 0.0f};
  set_regions(model, layer, settings.regions);
  return layer;
}

Regions regions_of(const Model& model, const Layer& layer) {
  const TensorRecord& out = model.output_of(model.op(layer.op));
  return {out.height, out.width, layer.region_rows, layer.region_columns};
}

void set_regions(const Model& model, Layer& layer, int32_t regions) {
  const TensorRecord& out = model.output_of(model.op(layer.op));
  layer.region_rows = static_cast<uint8_t>(clamp(regions, 1, out.height));
  layer.region_columns = static_cast<uint8_t>(clamp(regions, 1, out.width));
}

int32_t region_choices(const TrainerOptions& options) {
  if (options.rule == EstimatorRule::measured) return most_region_choices;
  return options.rule == EstimatorRule::pooled ? 1 : 0;
}

int32_t region_choice(const TrainerOptions& options, int32_t index) {
  return options.rule == EstimatorRule::measured ? compared_regions[index] : options.regions;
}

Layer pooled_layer(const Model& model, const Layer& layer, int32_t regions) {
  Layer pooled = layer;
  pooled.estimator = Estimator::pooled_perturbation;
  set_regions(model, pooled, regions);
  return pooled;
}

float mean_weight_scale(const Model& model, const OpRecord& op) {
  const int32_t channels = model.output_of(op).channels;
  const float* scales = model.weight_scales(op);
  float sum = 0.0f;
  int32_t live = 0;
  for (int32_t c = 0; c < channels; ++c) {
    if (channel_is_dead(scales[c])) continue;
    sum += scales[c];
    ++live;
  }
  return live == 0 ? 0.0f : sum / static_cast<float>(live);
}

int32_t channel_mu(const Model& model, const Layer& layer, int32_t channel) {
  if (layer.mean_scale <= 0.0f) return layer.mu_weight;
  const float scale = model.weight_scales(model.op(layer.op))[channel];
  if (channel_is_dead(scale)) return 0;
  const float steps = static_cast<float>(layer.mu_weight) * layer.mean_scale / scale;
  return clamp(round_saturating(steps), 1, largest_channel_mu);
}

int32_t bias_mu(const Model& model, const OpRecord& op, int32_t channel, int32_t mu) {
  const float weight_scale = model.weight_scales(op)[channel];
  if (channel_is_dead(weight_scale)) return 0;
  const float steps = static_cast<float>(mu) * model.output_of(op).scale / (model.input_of(op).scale * weight_scale);
  const int32_t rounded = round_saturating(steps);
  return rounded < 1 ? 1 : rounded;
}

}  // namespace pmt
