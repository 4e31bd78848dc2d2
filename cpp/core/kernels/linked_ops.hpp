// The functions of ops in a table of kernels, in a header of its own: only tables depend on the ops that are linked.
#pragma once

#include "core/base/linked/ops.hpp"
#include "core/base/linked/parts.hpp"
#include "core/base/op_record.hpp"

namespace pmt {

// An op's function for a table; null where the op is not linked.
template <typename Function>
constexpr Function* of_op(OpKind kind, Function* function) {
  return is_linked(linked::ops, kind) ? function : nullptr;
}

}  // namespace pmt
