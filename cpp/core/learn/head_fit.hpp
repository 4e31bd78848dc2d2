// The coefficients of a head that minimize its mean loss plus strength / (2 classes) * |coefficients - prior|^2.
#pragma once

#include "core/learn/head_objective.hpp"

namespace pmt {

// A head as it was, times a factor, in the objective's coefficients; without memory of its own for weights.
struct HeadPrior {
  const int8_t* weights;  // [class][feature]
  const float* units;     // [class], of a weight by a step of its feature
  const float* biases;    // [class], at the features' means
  float factor;

  float at(const HeadObjective& objective, int32_t feature, int32_t column) const {
    if (column >= objective.classes()) return 0.0f;
    if (feature == objective.features()) return factor * biases[column];
    const int8_t weight = weights[static_cast<int64_t>(column) * objective.features() + feature];
    return factor * (static_cast<float>(weight) * units[column] * objective.spread(feature));
  }
};

struct FitLimits {
  int32_t steps;      // at most
  float least_slope;  // the norm of the gradient that is small enough
};

// Each as many floats as coefficients.
struct FitMemory {
  float *head, *direction, *gradient, *last_gradient;
};

// Conjugate gradients (Polak and Ribiere 1969) with Newton's step along each direction, halved while the value rises.
// It starts at memory.head, which becomes the result. The state between steps is that memory and this object.
class HeadFit {
 public:
  void start(HeadObjective& objective, const SampleRange& range, const HeadPrior& prior, float strength,
             const FitLimits& limits, const FitMemory& memory);
  // At most two passes over the samples; `done` after the last one.
  Status step(bool* done);
  // The mean loss, without the penalty, before the last step that was not taken back.
  float loss() const { return loss_; }

 private:
  Status penalized(float* loss, float* value);
  bool take_back();
  bool turn(float square);
  Status lengthen(float* length);

  HeadObjective* objective_ = nullptr;
  SampleRange range_;
  const HeadPrior* prior_ = nullptr;
  float strength_ = 0.0f;
  FitLimits limits_ = {};
  FitMemory memory_ = {};
  float loss_ = 0.0f, lowest_ = 0.0f, last_square_ = 0.0f, length_ = 0.0f;
  int32_t steps_ = 0, halvings_ = 0;
  bool first_ = true;
};

}  // namespace pmt
