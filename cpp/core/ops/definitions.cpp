#include "core/ops/definitions.hpp"

#include "core/base/linked.hpp"

namespace pmt {

#define PMT_DEFINED_OP(name) , is_linked(linked::ops, OpKind::name) ? &name##_op : nullptr
const OpDefinition* const definitions[op_kinds] = {nullptr PMT_OPS(PMT_DEFINED_OP)};
#undef PMT_DEFINED_OP

}  // namespace pmt
