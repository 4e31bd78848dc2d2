#include "core/ops/definitions.hpp"

namespace pmt {

#define PMT_DEFINED_OP(name) , &name##_op
const OpDefinition* const definitions[op_kinds] = {nullptr PMT_OPS(PMT_DEFINED_OP)};
#undef PMT_DEFINED_OP

}  // namespace pmt
