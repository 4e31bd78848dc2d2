#include "core/zo/update.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/direction.hpp"
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

// Queries that an element's sum runs over. The mean of the others takes 1 / queries of each
// difference away, except from pairs, in which any baseline cancels.
int32_t difference_divisor(const StepContext& context, const Layer& layer) {
  const TrainerOptions& options = *context.options;
  const bool one_less = options.baseline == Baseline::leave_one_out && options.pairs == Pairs::one_sided;
  return layer.queries - (one_less ? 1 : 0);
}

}  // namespace

ChannelFactors gradient_factors(const StepContext& context, const Layer& layer, const UpdateInput& input,
                                int32_t channel) {
  const Model& model = context.model();
  const OpRecord& op = model.op(layer.op);
  const float accumulator_scale = model.input_of(op).scale * model.weight_scales(op)[channel];
  const float one = loss_one / static_cast<float>(1 << context.loss_shift);
  if (layer.estimator == Estimator::closed_form) {
    const float mean = accumulator_scale / (one * static_cast<float>(input.samples));
    return {mean, mean};
  }
  const int32_t divisor = difference_divisor(context, layer);
  const float mean = 1.0f / (one * static_cast<float>(input.sample_sums) * static_cast<float>(divisor));
  if (perturbs_nodes(layer)) {
    const bool pooled = layer.estimator == Estimator::pooled_perturbation;
    const float per_node = mean / static_cast<float>(layer.mu_node * (pooled ? 1 << share_bits : 1));
    const float factor = per_node * (accumulator_scale / model.output_of(op).scale);
    return {factor, factor};
  }
  const int32_t mu = bias_mu(model, op, channel, layer.mu_weight);
  return {mean / static_cast<float>(layer.mu_weight), mu == 0 ? 0.0f : mean / static_cast<float>(mu)};
}

float gradient_norm_scaling(const StepContext& context, const Layer& layer, int32_t samples) {
  const TrainerOptions& options = *context.options;
  const GradientNormScaling mode = options.gradient_norm_scaling;
  if (mode == GradientNormScaling::none || layer.estimator == Estimator::closed_form) return 1.0f;
  float directions = static_cast<float>(direction_count(options, layer));
  if (mode == GradientNormScaling::queries_and_samples) directions *= static_cast<float>(samples);
  const bool node = perturbs_nodes(layer);
  const int32_t moved = options.train_weights != 0 ? layer.weight_count : layer.channels;
  const float dimension = static_cast<float>(node ? node_columns(layer) : moved);
  return directions / (directions + dimension - 1.0f);
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

int32_t LayerUpdate::apply(const GradientSums& sums) {
  const Steps step = steps();
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

void LayerUpdate::accumulate(const GradientSums& sums) {
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

LayerUpdate::Steps LayerUpdate::steps() const {
  const bool exact = layer_.estimator == Estimator::closed_form;
  const float weights = input_.learning_rate * (exact ? options_.head_rate : 1.0f);
  const float biases = exact ? weights : weights * options_.bias_rate;
  if (options_.step == Step::normalized) {
    const int32_t taps = trained_weights(options_, layer_) / layer_.channels;
    return {normalize(weights, weight_squares_, static_cast<float>(live_) * static_cast<float>(taps)),
            normalize(biases, bias_squares_, static_cast<float>(live_))};
  }
  const float scaling = gradient_norm_scaling(context_, layer_, input_.samples);
  return {weights * scaling, biases * scaling};
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
  const int64_t bias = static_cast<int64_t>(layer_.bias[channel]) - round_saturating(update);
  layer_.bias[channel] = static_cast<int32_t>(bias > INT32_MAX ? INT32_MAX : (bias < INT32_MIN ? INT32_MIN : bias));
}

}  // namespace pmt
