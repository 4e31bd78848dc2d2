#include "core/train/gradient_memory.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/estimated.hpp"

namespace pmt {
namespace {

// Compact, of one group: with a batch, and at least with one sample.
constexpr int32_t batch_bytes = 1 << 16;
constexpr int32_t gap_bytes = 1 << 14;

// Sums of one channel: its weights, where they are trained, and its bias.
int64_t channel_sums(const TrainerOptions& options, const Layer& layer) {
  return trained_weights(options, layer) / layer.channels + 1;
}

// At most `bytes` of whole channels, at least one.
int64_t sums_within(const TrainerOptions& options, const Layer& layer, int32_t bytes) {
  const int64_t one = channel_sums(options, layer);
  const int64_t channels = bytes / (static_cast<int64_t>(sizeof(int64_t)) * one);
  return one * (channels < 1 ? 1 : (channels > layer.channels ? layer.channels : channels));
}

// Among the activations. Losses are all that the gradient of weights needs.
Plan::Gap sum_gap(const Plan& plan, const Layer& layer) {
  const bool all = is_estimated(layer, Estimator::weight_perturbation);
  return all ? Plan::Gap{0, plan.bytes()} : plan.gap(layer.op);
}

void reserve_sums(Plan& plan, const Layer& layer, int64_t sums) {
  const auto bytes = static_cast<int32_t>((static_cast<int64_t>(sizeof(int64_t)) * sums + 15) / 16 * 16);
  if (is_estimated(layer, Estimator::weight_perturbation)) {
    plan.reserve(bytes);
  } else {
    plan.widen(layer.op, bytes);
  }
}

}  // namespace

void GradientMemory::open(Arena& arena, StepMemory& memory) {
  memory_ = &memory;
  sum_count_ = 0;
  free_nodes_ = nullptr;
  const TrainerSetup& setup = memory.setup;
  const int32_t least = setup.sum_bytes > 0 ? setup.sum_bytes : (setup.batch == 1 ? gap_bytes : batch_bytes);
  for (int32_t i = 0; i < setup.layer_count; ++i) {
    const Layer& layer = memory.layers[i];
    const int64_t within = sums_within(memory.options, layer, least);
    const int64_t whole = channel_sums(memory.options, layer) * layer.channels;
    const int64_t needed = setup.compact ? within : whole;
    if (lies_in_gaps()) {  // they may be larger
      reserve_sums(memory.plan, layer, within);
    } else if (sum_count_ < needed) {
      sum_count_ = needed;
    }
  }
  sums_ = arena.take<int64_t>(MemoryPart::gradient, memory.workers() * sum_count_);
  if (memory.options.gradient_norm_scaling == GradientNormScaling::directions) {
    free_nodes_ = arena.take<int64_t>(MemoryPart::gradient, memory.workers());
  }
  const bool head = is_estimated(memory.layers[setup.layer_count - 1], Estimator::closed_form);
  head_gradients_ = arena.take<int32_t>(setup.compact && head ? setup.batch * classes() : 0);
}

int32_t GradientMemory::channels_at_once(const Layer& layer) const {
  const int64_t room =
      lies_in_gaps() ? sum_gap(memory_->plan, layer).bytes / static_cast<int32_t>(sizeof(int64_t)) : sum_count_;
  const int64_t channels = room / channel_sums(memory_->options, layer);
  return channels < layer.channels ? static_cast<int32_t>(channels) : layer.channels;
}

int64_t* GradientMemory::first_sum(int32_t worker, const Layer& layer) const {
  if (!lies_in_gaps()) return sums_ + worker * sum_count_;
  return reinterpret_cast<int64_t*>(memory_->workspaces[worker].activations + sum_gap(memory_->plan, layer).offset);
}

int64_t GradientMemory::count(const Layer& layer, const ChannelGroup& channels) const {
  return (clamp(channels.end, 0, layer.channels) - channels.begin) * channel_sums(memory_->options, layer);
}

GradientSums GradientMemory::sums(int32_t worker, const Layer& layer, const ChannelGroup& channels) const {
  const int32_t end = clamp(channels.end, 0, layer.channels);
  int64_t* start = first_sum(worker, layer);
  int64_t* bias = start + count(layer, channels) - (end - channels.begin);
  return {memory_->options.train_weights != 0 ? start : nullptr, bias, channels.begin, end};
}

void GradientMemory::clear(int32_t worker, const Layer& layer, const ChannelGroup& channels) const {
  int64_t* sums = first_sum(worker, layer);
  const int64_t entries = count(layer, channels);
  for (int64_t i = 0; i < entries; ++i) sums[i] = 0;
}

void GradientMemory::join(const Layer& layer, const ChannelGroup& channels) const {
  int64_t* total = first_sum(0, layer);
  const int64_t entries = count(layer, channels);
  for (int32_t w = 1; w < memory_->workers(); ++w) {
    const int64_t* sums = first_sum(w, layer);
    for (int64_t i = 0; i < entries; ++i) total[i] += sums[i];
  }
}

GradientSums GradientMemory::joined(const Layer& layer, const ChannelGroup& channels) const {
  GradientSums joined = sums(0, layer, channels);
  for (int32_t w = 0; counts_free_nodes() && w < memory_->workers(); ++w) joined.free_nodes += free_nodes_[w];
  return joined;
}

}  // namespace pmt
