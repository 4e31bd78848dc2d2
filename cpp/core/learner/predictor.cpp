#include "core/learner/predictor.hpp"

namespace pmt {

Status Predictor::open(const PredictorSetup& setup, Arena& tables) {
  const Model& model = *setup.model;
  auto* parameters = tables.take<Parameters>(MemoryPart::lists, model.op_count());
  auto* scratch = tables.take<int32_t>(MemoryPart::lists, model.op_count());
  auto* table = tables.take<int32_t>(MemoryPart::lists, Plan::table_size(model));
  if (!tables.fits()) return {Code::arena_too_small};
  network_ = {&model, setup.kernels, parameters, nullptr};
  bind();
  for (int32_t i = 0; i < model.op_count(); ++i) scratch[i] = op_scratch_bytes(network_, model.op(i));
  // No layer is trained: of their lists nothing is read.
  const Plan::Compact compact = {scratch, scratch, scratch, true, setup.streams, setup.stream_count};
  return plan_.make_compact(model, nullptr, 0, compact, table);
}

// The plan is a multiple of 16 bytes, behind which the logits stand.
void Predictor::place(uint8_t* activations) {
  memory_ = {};
  memory_.activations = activations;
  memory_.logits = reinterpret_cast<float*>(activations + plan_.bytes());
}

const float* Predictor::logits() const {
  main_logits(network_, plan_, memory_, 1, false);
  return memory_.logits;
}

}  // namespace pmt
