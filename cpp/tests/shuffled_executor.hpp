// Several workers played by one thread: tasks in a random order (or the last first), each by a
// random worker, and a caller who may want to stop after some of them.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/executor.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

enum class TaskOrder { shuffled, reversed };

class ShuffledExecutor {
 public:
  ShuffledExecutor(uint64_t seed, int32_t workers, TaskOrder order = TaskOrder::shuffled)
      : random_(seed), workers_(workers), order_(order) {}

  Executor executor() { return {workers_, this, run, stopping}; }

  // Stop at the n-th check for a stop, counted from now; the first is 0, and -1 is never.
  void stop_at(int32_t check) {
    stop_at_ = check;
    checks_ = 0;
    stopped_ = false;
  }
  int32_t checks() const { return checks_; }

 private:
  static bool run(void* context, int32_t count, Executor::Task task, void* argument, bool may_stop) {
    auto& self = *static_cast<ShuffledExecutor*>(context);
    for (const int32_t index : self.order_of(count)) {
      const int32_t worker = self.random_.integer(0, self.workers_ - 1);
      if (may_stop && self.stopped_) return false;
      task(argument, index, worker);
    }
    return !(may_stop && self.stopped_);
  }

  static bool stopping(void* context, int32_t) {
    auto& self = *static_cast<ShuffledExecutor*>(context);
    if (self.checks_++ == self.stop_at_) self.stopped_ = true;
    return self.stopped_;
  }

  std::vector<int32_t> order_of(int32_t count) {
    std::vector<int32_t> order(static_cast<size_t>(count));
    for (int32_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = count - 1 - i;
    if (order_ == TaskOrder::reversed) return order;
    for (int32_t i = count - 1; i > 0; --i) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random_.integer(0, i))]);
    }
    return order;
  }

  RandomSource random_;
  int32_t workers_;
  TaskOrder order_;
  int32_t stop_at_ = -1;
  int32_t checks_ = 0;
  bool stopped_ = false;
};

}  // namespace pmt::tests
