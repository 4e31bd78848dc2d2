#include "core/update.hpp"

#include "core/arithmetic.hpp"
#include "core/direction.hpp"
#include "core/loss.hpp"

namespace pmt {
namespace {

constexpr float largest_update = 16384.0f;  // keeps Q15.16 inside int32

// 16 random bits for each element of a layer.
class RoundingBits {
 public:
  RoundingBits(const Estimation& estimation, const Layer& layer, Purpose purpose)
      : id_{estimation.options->seed, estimation.step, static_cast<uint32_t>(layer.op), 0, 0, purpose} {}

  uint32_t at(int32_t element) {
    const auto index = static_cast<uint32_t>(element) / 8;
    if (!filled_ || index != index_) {
      block_ = random_block(id_, index);
      index_ = index;
      filled_ = true;
    }
    const auto part = static_cast<uint32_t>(element) % 8;
    return (block_.word[part / 2] >> (16 * (part % 2))) & 0xFFFFu;
  }

 private:
  StreamId id_;
  Random128 block_ = {};
  uint32_t index_ = 0;
  bool filled_ = false;
};

// Quantisation-aware scaling, paper Eq. 11 and its appendix: 1 / scale^2.
float qas(const TrainerOptions& options, float scale) {
  return options.quantisation_aware_scaling != 0 ? 1.0f / (scale * scale) : 1.0f;
}

// An overflow of extreme options times nothing is nothing, on every target.
float update_of(int64_t sum, float factor) {
  const float update = to_float(sum) * factor;
  return update == update ? update : 0.0f;
}

struct Steps {
  float weights, bias;
};

class LayerUpdate {
 public:
  LayerUpdate(const Estimation& estimation, const Layer& layer, const UpdateInput& input, const GradientSums& sums)
      : estimation_(estimation),
        options_(*estimation.options),
        model_(*estimation.network->model),
        op_(model_.op(layer.op)),
        layer_(layer),
        input_(input),
        sums_(sums) {}

  int32_t apply() {
    const Steps steps = options_.step == Step::normalised ? normalised_steps() : gradient_steps();
    int32_t changed = 0;
    RoundingBits weight_bits(estimation_, layer_, Purpose::rounding);
    for (int32_t c = 0; c < layer_.channels; ++c) {
      if (dead(c)) continue;
      const ChannelFactors direction = directions(c);
      changed += update_channel(c, direction.weight * steps.weights, weight_bits);
      if (options_.train_bias != 0) update_bias(c, direction.bias * steps.bias);
    }
    return changed;
  }

 private:
  bool dead(int32_t channel) const { return channel_is_dead(weight_scale(channel)); }
  float weight_scale(int32_t channel) const { return model_.weight_scales(op_)[channel]; }
  float bias_scale(int32_t channel) const { return model_.input_of(op_).scale * weight_scale(channel); }

  ChannelFactors directions(int32_t channel) const {
    const ChannelFactors gradient = gradient_factors(estimation_, layer_, input_, channel);
    return {gradient.weight * qas(options_, weight_scale(channel)), gradient.bias * qas(options_, bias_scale(channel))};
  }

  Steps gradient_steps() const {
    const float step = input_.learning_rate * gradient_norm_scaling(estimation_, layer_, input_.samples);
    return {step, step};
  }

  // Root mean squares over the live channels: of the weights in weight steps, of the biases in
  // output steps. Summed channel by channel, in order.
  Steps normalised_steps() const {
    float weight_squares = 0.0f, bias_squares = 0.0f;
    int32_t live = 0;
    for (int32_t c = 0; c < layer_.channels; ++c) {
      if (dead(c)) continue;
      ++live;
      const ChannelFactors direction = directions(c);
      weight_squares += channel_squares(c, direction.weight);
      const float in_output_steps = bias_scale(c) / model_.output_of(op_).scale;
      const float bias = update_of(sums_.bias[c], direction.bias) * in_output_steps;
      bias_squares += bias * bias;
    }
    const float active = static_cast<float>(active_weights(options_, layer_)) / static_cast<float>(layer_.channels);
    return {normalise(weight_squares, static_cast<float>(live) * active),
            normalise(bias_squares, static_cast<float>(live))};
  }

  float normalise(float squares, float count) const {
    if (squares <= 0.0f || !is_finite(squares)) return 0.0f;
    return input_.learning_rate / __builtin_sqrtf(squares / count);
  }

  float channel_squares(int32_t channel, float factor) const {
    const ChannelWeights at = channel_weights(model_, op_, channel);
    float squares = 0.0f;
    for (int32_t k = 0; k < at.count; ++k) {
      const float value = update_of(sums_.weights[at.first + k * at.stride], factor);
      squares += value * value;
    }
    return squares;
  }

  int32_t update_channel(int32_t channel, float factor, RoundingBits& bits) {
    const ChannelWeights at = channel_weights(model_, op_, channel);
    int32_t changed = 0;
    for (int32_t k = 0; k < at.count; ++k) {
      const int32_t i = at.first + k * at.stride;
      const float update = update_of(sums_.weights[i], factor);
      const uint32_t random = options_.rounding == Rounding::stochastic ? bits.at(i) : 0u;
      const int32_t step = round_update(update, options_.rounding, random);
      const int32_t weight = clamp(layer_.weights[i] - step, -largest_weight, largest_weight);
      changed += weight != layer_.weights[i];
      layer_.weights[i] = static_cast<int8_t>(weight);
    }
    return changed;
  }

  // A bias step is hundreds of times smaller than an output step: nearest rounding loses nothing.
  void update_bias(int32_t channel, float factor) {
    const int32_t step = round_saturating(update_of(sums_.bias[channel], factor));
    const int64_t bias = static_cast<int64_t>(layer_.bias[channel]) - step;
    layer_.bias[channel] = static_cast<int32_t>(bias > INT32_MAX ? INT32_MAX : (bias < INT32_MIN ? INT32_MIN : bias));
  }

  const Estimation& estimation_;
  const TrainerOptions& options_;
  const Model& model_;
  const OpRecord& op_;
  const Layer& layer_;
  const UpdateInput& input_;
  const GradientSums& sums_;
};

// Queries that a coordinate's sum runs over. The mean of the others takes 1 / queries of each
// difference away, except from pairs, in which any baseline cancels.
int32_t difference_divisor(const Estimation& estimation, const Layer& layer) {
  const TrainerOptions& options = *estimation.options;
  if (options.directions == Directions::coordinate) return 1;
  const bool one_less = options.baseline == Baseline::leave_one_out && options.pairs == Pairs::one_sided;
  return query_count(estimation, layer) - (one_less ? 1 : 0);
}

}  // namespace

ChannelFactors gradient_factors(const Estimation& estimation, const Layer& layer, const UpdateInput& input,
                                int32_t channel) {
  const Model& model = *estimation.network->model;
  const OpRecord& op = model.op(layer.op);
  const float accumulator_scale = model.input_of(op).scale * model.weight_scales(op)[channel];
  if (layer.estimator == Estimator::closed_form) {
    const float mean = accumulator_scale / (loss_one * static_cast<float>(input.samples));
    return {mean, mean};
  }
  const int32_t divisor = difference_divisor(estimation, layer);
  const float mean = 1.0f / (loss_one * static_cast<float>(input.sample_sums) * static_cast<float>(divisor));
  if (layer.estimator == Estimator::node_perturbation) {
    const float per_node = mean / static_cast<float>(layer.mu_node);
    const float factor = per_node * (accumulator_scale / model.output_of(op).scale);
    return {factor, factor};
  }
  const int32_t weight_mu = channel_mu(model, layer, channel);
  const int32_t mu = bias_mu(model, op, channel, layer.mu_weight);
  return {weight_mu == 0 ? 0.0f : mean / static_cast<float>(weight_mu), mu == 0 ? 0.0f : mean / static_cast<float>(mu)};
}

float gradient_norm_scaling(const Estimation& estimation, const Layer& layer, int32_t samples) {
  const TrainerOptions& options = *estimation.options;
  if (options.gradient_norm_scaling == GradientNormScaling::none || layer.estimator == Estimator::closed_form) {
    return 1.0f;
  }
  if (options.directions == Directions::coordinate) return 1.0f;
  float directions = static_cast<float>(direction_count(estimation, layer));
  if (options.gradient_norm_scaling == GradientNormScaling::queries_and_samples) {
    directions *= static_cast<float>(samples);
  }
  const bool node = layer.estimator == Estimator::node_perturbation;
  const float dimension = static_cast<float>(node ? layer.node_count : active_weights(options, layer));
  if (options.directions == Directions::hadamard) return directions < dimension ? directions / dimension : 1.0f;
  return directions / (directions + dimension - 1.0f);
}

int32_t round_update(float update, Rounding rounding, uint32_t random) {
  const float bounded = clamp(update, -largest_update, largest_update);
  if (rounding == Rounding::nearest) return round_half_even(bounded);
  const auto fixed = static_cast<int32_t>(bounded * 65536.0f);  // Q15.16; the product is exact
  return (fixed + static_cast<int32_t>(random & 0xFFFFu)) >> 16;
}

int32_t update_layer(const Estimation& estimation, const Layer& layer, const UpdateInput& input,
                     const GradientSums& sums) {
  return LayerUpdate(estimation, layer, input, sums).apply();
}

}  // namespace pmt
