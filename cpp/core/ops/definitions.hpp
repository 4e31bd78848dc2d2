// The definition of every op, by its kind: NAME_op in its own file. `definitions` has those that are linked.
#pragma once

#include "core/ops/op.hpp"

namespace pmt {

constexpr uint32_t op_kinds = words<OpKind>.count;

#define PMT_DECLARE_OP(name) extern const OpDefinition name##_op;
PMT_OPS(PMT_DECLARE_OP)
#undef PMT_DECLARE_OP

extern const OpDefinition* const definitions[op_kinds];

}  // namespace pmt
