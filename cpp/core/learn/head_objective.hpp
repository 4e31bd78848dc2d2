// The mean loss of a linear head over samples, as a function of its coefficients: value, gradient, curvature.
//
// Coefficients are float32 by [feature][class]; the last row holds the biases. They belong to features less their
// mean, divided by sqrt(variance + mean variance): features that hardly vary are not blown up.
#pragma once

#include "core/base/arena.hpp"
#include "core/base/executor.hpp"
#include "core/image/model.hpp"
#include "core/learn/head_samples.hpp"

namespace pmt {

struct HeadObjectiveSetup {
  int32_t features, classes;
  HeadSamples samples;
  int32_t block;      // samples in memory at once; no result depends on it
  Executor executor;  // nor on its workers
};

// Factors of a head: 0, 1/8 .. 1.
constexpr int32_t head_factors = 9;
constexpr float head_factor(int32_t index) { return static_cast<float>(index) * 0.125f; }

class HeadObjective {
 public:
  void open(const HeadObjectiveSetup& setup, Arena& arena);

  int32_t features() const { return setup_.features; }
  int32_t classes() const { return setup_.classes; }
  int32_t stride() const { return stride_; }  // classes, and zeros that fill the row
  int32_t coefficients() const { return (setup_.features + 1) * stride_; }

  // Means and spreads of the features, of all samples, and which classes their labels name. `scratch`: as many floats
  // as coefficients.
  Status measure_features(float* scratch);
  float mean(int32_t feature) const { return means_[feature]; }
  float spread(int32_t feature) const { return spreads_[feature]; }

  // Cross-entropy is that of the prediction among the classes that count: those that a label names, and others added.
  bool counts(int32_t column) const { return counts_[column]; }
  void add_class(int32_t column) { counts_[column] = true; }

  Status loss(const SampleRange& range, const float* head, float* mean_loss);
  Status gradient(const SampleRange& range, const float* head, float* gradient, float* mean_loss);
  Status curvature(const SampleRange& range, const float* head, const float* direction, float* mean_curvature);
  // The mean loss of the head times each of the factors.
  Status losses_of_factors(const float* head, float* mean_losses);

  // Multiply-accumulates up to now.
  int64_t macs() const { return macs_; }

 private:
  enum class Sum { losses, gradient, curvature, factors };
  struct Pass;
  struct Scratch {
    float *row, *logits, *other;
  };

  Status run(Pass& pass);
  Status read_block(const SampleRange& range, int32_t* next, int32_t* count);
  void add_sample(const Pass& pass, int32_t sample, const Scratch& scratch);
  void add_feature(const Pass& pass, int32_t feature, int32_t count, float* column);
  Scratch scratch(int32_t worker) const;
  float standardized(int32_t feature, int8_t value) const {
    return (static_cast<float>(value) - means_[feature]) * inverses_[feature];
  }

  HeadObjectiveSetup setup_ = {};
  int32_t stride_ = 0, scratch_floats_ = 0;
  int64_t macs_ = 0;
  float* means_ = nullptr;      // [feature]
  float* spreads_ = nullptr;    // [feature]
  float* inverses_ = nullptr;   // [feature], of the spreads
  bool* counts_ = nullptr;      // [class]
  int8_t* rows_ = nullptr;      // [block][feature]
  int32_t* labels_ = nullptr;   // [block]
  int32_t* places_ = nullptr;   // [block], index of the sample
  float* residuals_ = nullptr;  // [block][stride]
  float* values_ = nullptr;     // [block][head_factors]
  float* scratch_ = nullptr;    // [worker]
};

}  // namespace pmt
