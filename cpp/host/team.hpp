// A team of threads behind the core's Executor.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "core/base/executor.hpp"

namespace pmt::host {

// Threads to use for a request: as asked, or, for 0, as many as the machine (or OMP_NUM_THREADS)
// gives. Always 1 where OpenMP is missing, and in a process forked from one that has used several: OpenMP
// would wait for those of the parent.
int32_t thread_count(int32_t requested);

// Threads for a parallel region, which is about to start: no more than wanted, and as thread_count().
int32_t start_threads(int32_t wanted);

class Team {
 public:
  // `should_stop` is asked on the calling thread, at most ten times a second.
  explicit Team(int32_t threads, std::function<bool()> should_stop = nullptr);

  Executor executor();
  int32_t threads() const { return threads_; }

 private:
  static bool run(void* context, int32_t count, Executor::Task task, void* argument, bool may_stop);
  static bool stopping(void* context, int32_t worker);

  int32_t threads_;
  std::function<bool()> should_stop_;
  std::atomic<bool> stop_{false};
  std::chrono::steady_clock::time_point asked_;
};

}  // namespace pmt::host
