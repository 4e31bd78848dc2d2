#include "host/profile.hpp"

#include <algorithm>
#include <chrono>

namespace pmt::host {
namespace {

using Clock = std::chrono::steady_clock;

// Long against the clock and short against a profile of a hundred ops.
constexpr double measured_seconds = 1e-3;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Profiler::Profiler(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count)
    : model_(std::move(model)), batches_(model_->network(), model_->plan(), count, 1, model_->model().op_count() - 1) {
  input_.assign(images, images + int64_t{batches_.images()} * element_count(model_->model().input()));
  const auto take = [this](Arena& arena) { return batches_.take(arena); };
  memory_ = measured_memory(take);
  Arena arena = memory_.arena();
  activations_ = take(arena);
}

void Profiler::run(int32_t op) {
  const Network& network = model_->network();
  const Plan& plan = model_->plan();
  const Activations& memory = op < batches_.cut() ? activations_.few : activations_.many;
  const bool last = op == model_->model().op_count() - 1;
  if (last) {
    main_logits(network, plan, memory, batches_.images(), false);
  } else {
    forward(network, plan, memory, batches_.images_of(op), op, op + 1);
  }
}

double Profiler::time(int32_t op) {
  // An op's output shares no memory with its input, so it can run again.
  const auto start = Clock::now();
  run(op);
  const auto runs = static_cast<int32_t>(measured_seconds / std::max(since(start), 1e-7)) + 1;
  const auto warm = Clock::now();
  for (int32_t i = 0; i < runs; ++i) run(op);
  return since(warm) / runs / batches_.images_of(op);
}

void Profiler::start() {
  const Activations& memory = batches_.cut() > 0 ? activations_.few : activations_.many;
  batches_.put(memory, input_.data(), batches_.images_of(0));
}

// The few images again and again: what an op takes does not depend on them.
void Profiler::pass_cut() {
  const int32_t few = batches_.images_of(0), many = batches_.images();
  for (int32_t first = 0; first + few <= many; first += few) batches_.pass_cut(activations_, first, few, many);
}

std::vector<double> Profiler::time_ops() {
  const Access::Exclusive use(model_->access());
  start();
  const int32_t count = model_->model().op_count();
  std::vector<double> seconds;
  seconds.reserve(static_cast<size_t>(count));
  for (int32_t op = 0; op < count; ++op) {
    seconds.push_back(time(op));
    if (op + 1 == batches_.cut()) pass_cut();
  }
  return seconds;
}

double Profiler::time_op(int32_t op) {
  const Access::Exclusive use(model_->access());
  start();
  for (int32_t before = 0; before < op; ++before) {
    run(before);
    if (before + 1 == batches_.cut()) pass_cut();
  }
  return time(op);
}

}  // namespace pmt::host
