#include "core/zo/update.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/direction.hpp"
#include "core/zo/estimated.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

constexpr float largest_update = 16384.0f;  // keeps Q15.16 inside int32

// Quantization-aware scaling, paper Eq. 11 and its appendix: 1 / scale^2.
float qas(const TrainerOptions& options, float scale) {
  return options.quantization_aware_scaling != 0 ? 1.0f / (scale * scale) : 1.0f;
}

// inf * 0 is NaN: it counts as 0, so that every target agrees.
float or_nothing(float value) { return value == value ? value : 0.0f; }

float update_of(int64_t sum, float factor) { return or_nothing(to_float(sum) * factor); }

// Queries that an element's sum runs over. The mean of all queries takes 1 / queries of each
// difference away, except from pairs, in which any baseline cancels. In line it would be there twice.
__attribute__((noinline)) float difference_divisor(const StepContext& context, const Layer& layer, Purpose purpose) {
  const TrainerOptions& options = *context.options;
  const bool pairs = options.pairs == Pairs::antithetic;
  const int32_t queries = directions_of(options, layer, purpose).count * (pairs ? 2 : 1);
  if (options.baseline != Baseline::leave_one_out || pairs) return static_cast<float>(queries);
  return static_cast<float>(queries * (layer.queries - 1)) / static_cast<float>(layer.queries);  // products are exact
}

// Entries that a direction of a layer moves; of its free nodes, in the mean over the samples.
float moved_entries(const TrainerOptions& options, const Layer& layer, int32_t samples, Purpose purpose,
                    int64_t free_nodes) {
  if (options.gradient_norm_scaling != GradientNormScaling::directions) {
    const int32_t parameters = options.train_weights != 0 ? layer.weight_count : layer.channels;
    return static_cast<float>(perturbs_nodes(layer) ? node_columns(layer) : parameters);
  }
  if (is_estimated(layer, Estimator::node_perturbation)) {
    if (options.nodes == PerturbedNodes::all) return static_cast<float>(layer.node_count);
    const float mean = to_float(free_nodes) / static_cast<float>(samples);
    return mean < 1.0f ? 1.0f : mean;
  }
  if (perturbs_nodes(layer)) return static_cast<float>(layer.channels);
  const int32_t weights = trained_weights(options, layer), biases = trained_biases(options, layer);
  if (!parts_queries(options)) return static_cast<float>(weights + biases);
  return static_cast<float>(purpose == Purpose::weight_signs ? weights : biases);
}

}  // namespace

ChannelFactors gradient_factors(const StepContext& context, const Layer& layer, const UpdateInput& input,
                                int32_t channel) {
  const Model& model = context.model();
  const OpRecord& op = model.op(layer.op);
  const float accumulator_scale = model.input_of(op).scale * model.weight_scales(op)[channel];
  const float one = loss_one / static_cast<float>(1 << context.loss_shift);
  if (is_estimated(layer, Estimator::closed_form)) {
    const float mean = accumulator_scale / (one * static_cast<float>(input.samples));
    return {mean, mean};
  }
  const auto mean_over = [&](Purpose purpose) {
    return 1.0f / (one * static_cast<float>(input.sample_sums) * difference_divisor(context, layer, purpose));
  };
  if (perturbs_nodes(layer)) {
    const float mean = mean_over(Purpose::node_signs);
    const bool pooled = is_estimated(layer, Estimator::pooled_perturbation);
    const float per_node = mean / static_cast<float>(layer.mu_node * (pooled ? 1 << share_bits : 1));
    const float factor = per_node * (accumulator_scale / model.output_of(op).scale);
    return {factor, factor};
  }
  const int32_t mu = bias_mu(model, layer, *context.options, channel);
  return {mean_over(Purpose::weight_signs) / static_cast<float>(layer.mu_weight),
          mu == 0 ? 0.0f : mean_over(Purpose::bias_signs) / static_cast<float>(mu)};
}

__attribute__((noinline)) float gradient_norm_scaling(const StepContext& context, const Layer& layer, int32_t samples,
                                                      Purpose purpose, int64_t free_nodes) {
  const TrainerOptions& options = *context.options;
  const GradientNormScaling mode = options.gradient_norm_scaling;
  if (mode == GradientNormScaling::none || is_estimated(layer, Estimator::closed_form)) return 1.0f;
  const bool node = perturbs_nodes(layer);
  const bool drawn = mode == GradientNormScaling::directions && !shares_perturbations(options, layer.estimator);
  float directions = static_cast<float>(directions_of(options, layer, node ? Purpose::node_signs : purpose).count);
  if (mode == GradientNormScaling::queries_and_samples || drawn) directions *= static_cast<float>(samples);
  return directions / (directions + moved_entries(options, layer, samples, purpose, free_nodes) - 1.0f);
}

int32_t round_update(float update, Rounding rounding, uint32_t random) {
  const float bounded = clamp(update, -largest_update, largest_update);
  if (rounding == Rounding::nearest) return round_half_even(bounded);
  const auto fixed = static_cast<int32_t>(bounded * 65536.0f);  // Q15.16; the product is exact
  return (fixed + static_cast<int32_t>(random & 0xFFFFu)) >> 16;
}

uint32_t RoundingBits::at(int32_t element) {
  const auto index = static_cast<uint32_t>(element) / 8;
  if (!filled_ || index != index_) {
    block_ = random_block(id_, index);
    index_ = index;
    filled_ = true;
  }
  const auto part = static_cast<uint32_t>(element) % 8;
  return (block_.word[part / 2] >> (16 * (part % 2))) & 0xFFFFu;
}

LayerUpdate::LayerUpdate(const StepContext& context, const Layer& layer, const UpdateInput& input)
    : context_(context),
      options_(*context.options),
      model_(context.model()),
      op_(model_.op(layer.op)),
      layer_(layer),
      input_(input) {}

__attribute__((noinline)) int32_t LayerUpdate::apply(const GradientSums& sums) {
  const Steps step = steps(sums.free_nodes);
  int32_t changed = 0;
  RoundingBits weight_bits(context_, layer_, Purpose::rounding);
  for (int32_t c = sums.begin; c < sums.begin + sums.channels(layer_); ++c) {
    if (dead(c)) continue;
    const ChannelFactors factor = factors(c);
    if (options_.train_weights != 0) changed += update_weights(sums, c, factor.weight * step.weights, weight_bits);
    if (options_.train_bias != 0) update_bias(c, update_of(sums.bias[c - sums.begin], factor.bias * step.bias));
  }
  return changed;
}

// Factors of the sums in a step.
ChannelFactors LayerUpdate::factors(int32_t channel) const {
  const ChannelFactors gradient = gradient_factors(context_, layer_, input_, channel);
  return {gradient.weight * qas(options_, weight_scale(channel)), gradient.bias * qas(options_, bias_scale(channel))};
}

__attribute__((noinline)) void LayerUpdate::accumulate(const GradientSums& sums) {
  for (int32_t c = sums.begin; c < sums.begin + sums.channels(layer_); ++c) {
    if (dead(c)) continue;
    ++live_;
    const ChannelFactors factor = factors(c);
    const ChannelWeights from = sums.of(model_, layer_, c);
    float squares = 0.0f;
    for (int32_t k = 0; k < from.count && options_.train_weights != 0; ++k) {
      const float value = update_of(sums.weights[from.first + k * from.stride], factor.weight);
      squares += value * value;
    }
    weight_squares_ += squares;
    const float in_output_steps = bias_scale(c) / model_.output_of(op_).scale;
    const float bias = update_of(sums.bias[c - sums.begin], factor.bias) * in_output_steps;
    bias_squares_ += bias * bias;
  }
}

LayerUpdate::Steps LayerUpdate::steps(int64_t free_nodes) const {
  const bool exact = is_estimated(layer_, Estimator::closed_form);
  const float weights = input_.learning_rate * (exact ? options_.head_rate : 1.0f);
  const float biases = exact ? weights : weights * options_.bias_rate;
  if (options_.step == Step::normalized) {
    const int32_t taps = trained_weights(options_, layer_) / layer_.channels;
    return {normalize(weights, weight_squares_, static_cast<float>(live_) * static_cast<float>(taps)),
            normalize(biases, bias_squares_, static_cast<float>(live_))};
  }
  const auto scaling = [&](Purpose purpose) {
    return gradient_norm_scaling(context_, layer_, input_.samples, purpose, free_nodes);
  };
  return {weights * scaling(Purpose::weight_signs), biases * scaling(Purpose::bias_signs)};
}

float LayerUpdate::normalize(float learning_rate, float squares, float count) const {
  if (squares <= 0.0f || !is_finite(squares)) return 0.0f;
  return learning_rate / __builtin_sqrtf(squares / count);
}

int32_t LayerUpdate::update_weights(const GradientSums& sums, int32_t channel, float factor, RoundingBits& bits) {
  const ChannelWeights at = channel_weights(model_, op_, channel), from = sums.of(model_, layer_, channel);
  int32_t changed = 0;
  for (int32_t k = 0; k < at.count; ++k) {
    const int32_t i = at.first + k * at.stride;
    const float update = update_of(sums.weights[from.first + k * from.stride], factor);
    const uint32_t random = options_.rounding == Rounding::stochastic ? bits.at(i) : 0u;
    const int32_t step = round_update(update, options_.rounding, random);
    const int32_t weight = clamp(layer_.weights[i] - step, -largest_weight, largest_weight);
    changed += weight != layer_.weights[i];
    layer_.weights[i] = static_cast<int8_t>(weight);
  }
  return changed;
}

// A bias step is hundreds of times smaller than an output step: nearest rounding loses nothing.
void LayerUpdate::update_bias(int32_t channel, float update) {
  layer_.bias[channel] = saturated(int64_t{layer_.bias[channel]} - round_saturating(update));
}

}  // namespace pmt
