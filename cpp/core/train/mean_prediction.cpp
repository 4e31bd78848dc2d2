#include "core/train/mean_prediction.hpp"

#include "core/zo/exponential.hpp"
#include "core/zo/loss_units.hpp"
#include "core/zo/softmax_losses.hpp"

namespace pmt {

void MeanPrediction::open(Arena& arena, const StepMemory& memory) {
  memory_ = &memory;
  sums_ = keeps_prediction(memory.options) ? arena.take<int64_t>(MemoryPart::tables, entries()) : nullptr;
}

void MeanPrediction::clear() {
  if (sums_ == nullptr) return;
  for (int64_t i = 0; i < entries(); ++i) sums_[i] = 0;
}

void MeanPrediction::add(int32_t worker, const float* logits) {
  if (sums_ != nullptr) add_prediction(logits, classes(), sums_ + int64_t{worker} * classes());
}

void MeanPrediction::write_surprisal(int32_t samples, float* surprisal) const {
  const float all = loss_one * static_cast<float>(samples);
  for (int32_t c = 0; c < classes(); ++c) {
    int64_t sum = 0;
    for (int32_t w = 0; w < memory_->workers(); ++w) sum += sums_[int64_t{w} * classes() + c];
    const float mean = clamp(to_float(sum) / all, 1.0f / loss_one, 1.0f);
    surprisal[c] = log_at_least_one(1.0f / mean);
  }
}

}  // namespace pmt
