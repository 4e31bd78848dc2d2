// How independent tasks are run: one after another on a device, by a team of threads on a host.
#pragma once

#include <cstdint>

namespace pmt {

struct Executor {
  using Task = void (*)(void* argument, int32_t index, int32_t worker);

  int32_t workers;
  void* context;
  // Runs task(argument, i, worker) for every i in 0..count-1, worker in 0..workers-1. Where it may
  // stop and the caller wants to, it leaves tasks out and returns false.
  bool (*run)(void* context, int32_t count, Task task, void* argument, bool may_stop);
  // The same of task(i, worker).
  template <typename Callable>
  bool for_each(int32_t count, bool may_stop, const Callable& task) const {
    const auto call = [](void* argument, int32_t index, int32_t worker) {
      (*static_cast<const Callable*>(argument))(index, worker);
    };
    return run(context, count, call, const_cast<Callable*>(&task), may_stop);
  }
  // Asked by long tasks between queries: true when the caller wants to stop.
  bool (*stopping)(void* context, int32_t worker);
};

// One worker, in order.
inline Executor sequential_executor() {
  const auto run = [](void*, int32_t count, Executor::Task task, void* argument, bool) {
    for (int32_t i = 0; i < count; ++i) task(argument, i, 0);
    return true;
  };
  return {1, nullptr, run, [](void*, int32_t) { return false; }};
}

}  // namespace pmt
