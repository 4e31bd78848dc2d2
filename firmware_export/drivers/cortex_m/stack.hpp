// How deep the stack has been: startup.cpp painted it.
#pragma once

#include "common/board.hpp"

namespace pmt::cortex_m {

board::StackUse stack_use();

}  // namespace pmt::cortex_m
