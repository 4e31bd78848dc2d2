#include "host/image_batches.hpp"

#include <algorithm>
#include <cstring>

namespace pmt::host {
namespace {

constexpr int32_t wanted_bytes = 1 << 18;  // half of a common second-level cache
constexpr int32_t wanted_images = 8;       // for which reading the weights costs little

}  // namespace

ImageBatches::ImageBatches(const Network& network, const Plan& plan, int32_t count, int32_t threads, int32_t end)
    : network_(network), plan_(plan), bytes_(plan.bytes()) {
  const int32_t share = std::max(1, count / threads), wanted = std::min(wanted_images, share);
  few_ = many_ = std::clamp(wanted_bytes / std::max(bytes_, 1), 1, share);
  for (int32_t op = 1; op < end && many_ < wanted; ++op) {
    uint32_t passing;
    if (!passes_alone(op, &passing)) continue;
    const int32_t bytes = bytes_from(op, passing), fitting = wanted_bytes / bytes;
    if (fitting < wanted) continue;
    const int32_t batches = (share + fitting - 1) / fitting;
    many_ = (share + batches - 1) / batches;
    cut_ = op;
    bytes_ = bytes;
    passing_ = passing;
  }
}

bool ImageBatches::passes_alone(int32_t op, uint32_t* tensor) const {
  int32_t alive = 0;
  for (int32_t i = 0; i < network_.model->tensor_count(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    if (plan_.producer(index) >= op || plan_.last_use(index) < op) continue;
    *tensor = index;
    ++alive;
  }
  return alive == 1;
}

// The bytes of the plan's memory that an image takes.
int32_t ImageBatches::bytes_from(int32_t op, uint32_t passing) const {
  int32_t bytes = 1;
  for (int32_t i = 0; i < network_.model->tensor_count(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    if (index == passing || plan_.producer(index) >= op) {
      bytes = std::max(bytes, plan_.offset(Pass::main, i) + plan_.size(i));
    }
  }
  return bytes;
}

ImageBatches::Memory ImageBatches::take(Arena& arena) const {
  const Activations few = take_activations(arena, network_, plan_, few_);
  Memory memory = {few, few};
  if (cut_ == 0) return memory;
  const auto alignment = static_cast<size_t>(network_.kernels->alignment);
  memory.many.activations = arena.take<uint8_t>(int64_t{bytes_} * many_, alignment);
  memory.many.queries = memory.many.activations;
  memory.many.logits = arena.take<float>(int64_t{network_.model->classes()} * many_);
  return memory;
}

void ImageBatches::run(const Memory& memory, const int8_t* images, int32_t count, int32_t end) const {
  if (cut_ == 0) put(memory.many, images, count);
  const int64_t elements = element_count(network_.model->input());
  for (int32_t first = 0; first < count && cut_ > 0; first += few_) {
    const int32_t part = std::min(few_, count - first);
    put(memory.few, images + first * elements, part);
    forward(network_, plan_, memory.few, part, 0, cut_);
    pass_cut(memory, first, part, count);
  }
  forward(network_, plan_, memory.many, count, cut_, end);
}

void ImageBatches::put(const Activations& memory, const int8_t* images, int32_t count) const {
  const uint32_t input = network_.model->header().input_tensor;
  const int32_t elements = element_count(network_.model->input()), stride = plan_.size(static_cast<int32_t>(input));
  int8_t* place = memory.tensor(plan_, Pass::main, input, count);
  for (int32_t i = 0; i < count; ++i) {
    std::memcpy(place + i * stride, images + int64_t{i} * elements, static_cast<size_t>(elements));
  }
}

void ImageBatches::pass_cut(const Memory& memory, int32_t first, int32_t part, int32_t count) const {
  const int32_t stride = plan_.size(static_cast<int32_t>(passing_));
  std::memcpy(memory.many.tensor(plan_, Pass::main, passing_, count) + first * stride,
              memory.few.tensor(plan_, Pass::main, passing_, part),
              static_cast<size_t>(part) * static_cast<size_t>(stride));
}

}  // namespace pmt::host
