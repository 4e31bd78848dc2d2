// Forward passes of one image with as little memory as there is a plan for: to the head, or to any layer before it.
#pragma once

#include "core/net/forward.hpp"
#include "core/net/segments.hpp"

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
  // After the model's overlay has changed.
  void bind() { bind_parameters(*network_.model, network_.parameters); }

  // Plans passes that end before an op: what streams there does not. The last op: the whole network streams.
  Status stop_at(int32_t op);
  // Where a stream ends that an op is inside of, which passes cannot begin at: the op behind; else the op itself.
  int32_t behind_stream(int32_t op) const;
  // Memory of a pass, which holds nothing between two passes, in bytes; 16-byte aligned.
  size_t activation_bytes() const;
  void place(uint8_t* activations);
  // Memory of a pass of the whole network, and of the input stage before it.
  size_t whole_bytes() const { return whole_bytes_; }
  // Room for passes that end there, and for those of the whole network in between.
  size_t room() const { return pass_bytes() < whole_bytes_ ? whole_bytes_ : pass_bytes(); }

  // The place of a sensor's frame before a pass of the whole network, where the model has an input stage.
  uint8_t* sensor_frame() const;
  // The frame there, which is overwritten, becomes the image in input().
  void run_stage() const;

  int8_t* input() const { return memory_.tensor(plan_, Pass::main, network_.model->header().input_tensor); }
  // The pass of the image in input().
  void run() const { run(0, end_); }
  // A part of a pass, from activations that are there.
  void run(int32_t begin, int32_t end) const { forward(network_, plan_, memory_, 1, begin, end); }
  // The input of the op before which the passes end, after run().
  const int8_t* features() const { return memory_.tensor(plan_, Pass::main, network_.model->op(end_).input[0]); }
  // Logits, one a class, after a run() to the last op.
  const float* logits() const;

  int32_t last() const { return network_.model->op_count() - 1; }
  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }
  const Activations& memory() const { return memory_; }

 private:
  size_t pass_bytes() const;
  Status make_plan(const StreamedOps* streams, int32_t count);

  Network network_ = {};
  Plan plan_;
  Activations memory_ = {};
  int32_t* scratch_ = nullptr;      // bytes of each op
  int32_t* table_ = nullptr;        // of the plan
  StreamedOps* streams_ = nullptr;  // of a pass of the whole network
  int32_t stream_count_ = 0;
  int32_t end_ = 0;
  size_t whole_bytes_ = 0;
  int32_t whole_ = -1;  // the first op of the stream that is not one in the plan; -1: all are
};

}  // namespace pmt
