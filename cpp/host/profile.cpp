#include "host/profile.hpp"

#include <algorithm>
#include <chrono>

#include "core/net/forward.hpp"
#include "host/inference.hpp"

namespace pmt::host {
namespace {

using Clock = std::chrono::steady_clock;

// Long against the clock and short against a profile of a hundred ops.
constexpr double measured_seconds = 1e-3;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Profiler::Profiler(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count)
    : model_(std::move(model)), images_(images_at_once(model_->plan(), count, 1)) {
  input_.assign(images, images + int64_t{images_} * element_count(model_->model().input()));
  const auto take = [this](Arena& arena) {
    return take_activations(arena, model_->network(), model_->plan(), images_);
  };
  memory_ = measured_memory(take);
  Arena arena = memory_.arena();
  activations_ = take(arena);
}

void Profiler::run(int32_t op) {
  const bool last = op == model_->model().op_count() - 1;
  if (last) {
    main_logits(model_->network(), model_->plan(), activations_, images_, false);
  } else {
    forward(model_->network(), model_->plan(), activations_, images_, op, op + 1);
  }
}

double Profiler::time(int32_t op) {
  // An op's output shares no memory with its input, so it can run again.
  const auto start = Clock::now();
  run(op);
  const auto runs = static_cast<int32_t>(measured_seconds / std::max(since(start), 1e-7)) + 1;
  const auto warm = Clock::now();
  for (int32_t i = 0; i < runs; ++i) run(op);
  return since(warm) / runs / images_;
}

void Profiler::put_images() {
  const uint32_t input = model_->model().header().input_tensor;
  std::copy(input_.begin(), input_.end(), activations_.tensor(model_->plan(), Pass::main, input, images_));
}

std::vector<double> Profiler::time_ops() {
  const Access::Exclusive use(model_->access());
  put_images();
  const int32_t count = model_->model().op_count();
  std::vector<double> seconds;
  seconds.reserve(static_cast<size_t>(count));
  for (int32_t op = 0; op < count; ++op) seconds.push_back(time(op));
  return seconds;
}

double Profiler::time_op(int32_t op) {
  const Access::Exclusive use(model_->access());
  put_images();
  for (int32_t before = 0; before < op; ++before) run(before);
  return time(op);
}

}  // namespace pmt::host
