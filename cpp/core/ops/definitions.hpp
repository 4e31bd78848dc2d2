// The definition of every op: NAME_op, in its own file.
#pragma once

#include "core/ops/op.hpp"

namespace pmt {

#define PMT_DECLARE_OP(name) extern const OpDefinition name##_op;
PMT_OPS(PMT_DECLARE_OP)
#undef PMT_DECLARE_OP

}  // namespace pmt
