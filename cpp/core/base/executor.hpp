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
