// One worker that keeps the board's watchdog fed: between the tasks of a step, and between queries.
#pragma once

#include "core/base/executor.hpp"

namespace pmt::firmware {

Executor watched_executor();

}  // namespace pmt::firmware
