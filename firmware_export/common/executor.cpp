#include "common/executor.hpp"

#include "common/board.hpp"

namespace pmt::firmware {
namespace {

bool run_in_order(void*, int32_t count, Executor::Task task, void* argument, bool) {
  for (int32_t i = 0; i < count; ++i) {
    board::feed_watchdog();
    task(argument, i, 0);
  }
  return true;
}

bool never(void*, int32_t) {
  board::feed_watchdog();
  return false;
}

}  // namespace

Executor watched_executor() { return {1, nullptr, run_in_order, never}; }

}  // namespace pmt::firmware
