#include "core/base/executor.hpp"

namespace pmt {

namespace {

bool run_in_order(void*, int32_t count, Executor::Task task, void* argument, bool) {
  for (int32_t i = 0; i < count; ++i) task(argument, i, 0);
  return true;
}

bool never(void*, int32_t) { return false; }

}  // namespace

Executor sequential_executor() { return {1, nullptr, run_in_order, never}; }

}  // namespace pmt
