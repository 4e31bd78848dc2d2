// Forward passes of one image with as little memory as there is a plan for, and what the head makes of them.
#pragma once

#include "core/net/forward.hpp"

namespace pmt {

struct PredictorSetup {
  const Model* model;
  const Kernels* kernels;      // that do not pack
  const StreamedOps* streams;  // as an earlier plan has found them; null: they are searched for
  int32_t stream_count;
};

class Predictor {
 public:
  Status open(const PredictorSetup& setup, Arena& tables);
  // Where its activations are, which hold nothing between two images: so many bytes, 16-byte aligned.
  size_t activation_bytes() const { return static_cast<size_t>(plan_.bytes()) + logit_bytes(); }
  void place(uint8_t* activations);
  // After the model's overlay has changed.
  void bind() { bind_parameters(*network_.model, network_.parameters); }

  int8_t* input() const { return memory_.tensor(plan_, Pass::main, network_.model->header().input_tensor); }
  // The pass of the image in input(), up to the head.
  void run() const { forward(network_, plan_, memory_, 1, 0, last()); }
  // The head's input, after run().
  const int8_t* features() const { return memory_.tensor(plan_, Pass::main, network_.model->op(last()).input[0]); }
  // Logits of the head, after run(): one a class.
  const float* logits() const;

  const Plan& plan() const { return plan_; }

 private:
  size_t logit_bytes() const { return sizeof(float) * static_cast<size_t>(network_.model->classes()); }
  int32_t last() const { return network_.model->op_count() - 1; }

  Network network_ = {};
  Plan plan_;
  Activations memory_ = {};
};

}  // namespace pmt
