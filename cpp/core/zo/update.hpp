// From exact integer sums to new int8 weights and int32 biases, in place. Paper Eq. 11.
#pragma once

#include "core/zo/gradient.hpp"

namespace pmt {

struct UpdateInput {
  float learning_rate;  // or, with normalized steps, the root mean square of the update in steps; see also bias_rate
  int32_t samples;      // batch size
  // Perturbation sets that the sums ran over: samples, or 1 where the batch shared its own and the
  // differences were averaged.
  int32_t sample_sums;
};

// Gradient of the mean loss by the stored integers of one channel: sum * factor.
struct ChannelFactors {
  float weight;
  float bias;
};
ChannelFactors gradient_factors(const StepContext& context, const Layer& layer, const UpdateInput& input,
                                int32_t channel);

// Gradient-norm scaling k / (k + d - 1) of weights (purpose weight_signs) or biases; 1 where it is off or the gradient
// is exact. `free_nodes` are those of the samples together.
float gradient_norm_scaling(const StepContext& context, const Layer& layer, int32_t samples, Purpose purpose,
                            int64_t free_nodes);

// 16 random bits for each element of a layer.
class RoundingBits {
 public:
  RoundingBits(const StepContext& context, const Layer& layer, Purpose purpose)
      : id_{context.options->seed, context.step, static_cast<uint32_t>(layer.op), 0, 0, purpose} {}

  uint32_t at(int32_t element);

 private:
  StreamId id_;
  Random128 block_ = {};
  uint32_t index_ = 0;
  bool filled_ = false;
};

// Rounds an update in steps, either to the nearest integer (half to even) or up or down at random so
// that its mean is the update, cut to 1/65536 of a step; `random` holds 16 random bits.
int32_t round_update(float update, Rounding rounding, uint32_t random);

// The update of a layer, a group of channels after another in order. Dead channels stay. accumulate() and apply() are
// not in line: link-time optimization would keep their frames while a gradient is summed up.
class LayerUpdate {
 public:
  LayerUpdate(const StepContext& context, const Layer& layer, const UpdateInput& input);

  // Whether the first change needs all sums to have been accumulated, into norms.
  bool needs_all_sums() const { return options_.step == Step::normalized; }
  void accumulate(const GradientSums& sums);

  // Returns the number of weights that changed.
  int32_t apply(const GradientSums& sums);

 private:
  struct Steps {
    float weights, bias;
  };

  bool dead(int32_t channel) const { return channel_is_dead(weight_scale(channel)); }
  float weight_scale(int32_t channel) const { return model_.weight_scales(op_)[channel]; }
  float bias_scale(int32_t channel) const { return model_.input_of(op_).scale * weight_scale(channel); }
  ChannelFactors factors(int32_t channel) const;
  Steps steps(int64_t free_nodes) const;
  float normalize(float learning_rate, float squares, float count) const;
  int32_t update_weights(const GradientSums& sums, int32_t channel, float factor, RoundingBits& bits);
  void update_bias(int32_t channel, float update);

  const StepContext& context_;
  const TrainerOptions& options_;
  const Model& model_;
  const OpRecord& op_;
  const Layer& layer_;
  const UpdateInput input_;
  // Normalized steps: root mean squares over the live channels, of the weights in weight steps, of the
  // biases in output steps. Summed channel by channel, in order.
  float weight_squares_ = 0.0f, bias_squares_ = 0.0f;
  int32_t live_ = 0;
};

}  // namespace pmt
