#include "core/learner/predictor.hpp"

#include "core/input/input_stage.hpp"

namespace pmt {
Status Predictor::open(const PredictorSetup& setup, Arena& tables) {
  const Model& model = *setup.model;
  auto* parameters = tables.take<Parameters>(MemoryPart::lists, model.op_count());
  scratch_ = tables.take<int32_t>(MemoryPart::lists, model.op_count());
  table_ = tables.take<int32_t>(MemoryPart::lists, Plan::table_size(model));
  // A stream has two ops or more. The last entry is the one that is left out.
  streams_ = tables.take<StreamedOps>(MemoryPart::lists, model.op_count() / 2 + 1);
  if (!tables.fits()) return {Code::arena_too_small};
  network_ = {&model, setup.kernels, parameters, nullptr};
  bind();
  for (int32_t i = 0; i < model.op_count(); ++i) scratch_[i] = op_scratch_bytes(network_, model.op(i));
  end_ = last();
  whole_ = -1;
  PMT_RETURN_IF_ERROR(make_plan(setup.streams, setup.stream_count));
  whole_bytes_ = pass_bytes();
  stream_count_ = 0;
  for (int32_t op = 0; op < model.op_count(); op = plan_.segment_end(op) + 1) {
    if (plan_.streams(op)) streams_[stream_count_++] = {op, plan_.segment_end(op), plan_.band(op)};
  }
  return {};
}

// No layer is trained: of their lists nothing is read.
Status Predictor::make_plan(const StreamedOps* streams, int32_t count) {
  const Plan::Compact compact = {scratch_, scratch_, scratch_, true, streams, count};
  return plan_.make_compact(*network_.model, nullptr, 0, compact, table_);
}

Status Predictor::stop_at(int32_t op) {
  end_ = op;
  int32_t left_out = stream_count_;
  for (int32_t i = 0; i < stream_count_; ++i) {
    if (op < last() && streams_[i].begin <= op && op <= streams_[i].end) left_out = i;
  }
  const int32_t whole = left_out < stream_count_ ? streams_[left_out].begin : -1;
  if (whole == whole_) return {};
  whole_ = whole;
  if (whole < 0) return make_plan(streams_, stream_count_);
  const StreamedOps stream = streams_[left_out];
  for (int32_t i = left_out; i + 1 < stream_count_; ++i) streams_[i] = streams_[i + 1];
  const Status status = make_plan(streams_, stream_count_ - 1);
  for (int32_t i = stream_count_ - 1; i > left_out; --i) streams_[i] = streams_[i - 1];
  streams_[left_out] = stream;
  return status;
}

int32_t Predictor::behind_stream(int32_t op) const {
  for (int32_t i = 0; i < stream_count_; ++i) {
    if (streams_[i].begin < op && op <= streams_[i].end) return streams_[i].end + 1;
  }
  return op;
}

// The plan is a multiple of 16 bytes, behind which the logits stand.
size_t Predictor::activation_bytes() const {
  Arena measure;
  measure.take<uint8_t>(plan_.bytes());
  measure.take<float>(network_.model->classes());
  return measure.used();
}

// With the input stage before it.
size_t Predictor::pass_bytes() const {
  const Model& model = *network_.model;
  if (model.stage() == nullptr) return activation_bytes();
  const int32_t input = plan_.offset(Pass::main, static_cast<int32_t>(model.header().input_tensor));
  const auto stage = static_cast<size_t>(input + stage_memory(model).bytes);
  return activation_bytes() < stage ? stage : activation_bytes();
}

uint8_t* Predictor::sensor_frame() const {
  return reinterpret_cast<uint8_t*>(input()) + stage_memory(*network_.model).frame;
}

void Predictor::run_stage() const {
  auto* const memory = reinterpret_cast<uint8_t*>(input());
  run_input_stage(*network_.model, sensor_frame(), memory + stage_memory(*network_.model).scratch, input());
}

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
