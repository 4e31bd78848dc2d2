// The rules an op's record must keep; Model::open() applies them.
#pragma once

#include "core/image/model.hpp"

namespace pmt {

bool geometry_is_valid(const Model& model, const OpRecord& op);
bool quantization_agrees(const Model& model, const OpRecord& op);
bool data_is_inside(const Model& model, const OpRecord& op);
// No byte of the op's weights, bias and scales belongs to another array of it or of an earlier op.
bool data_is_its_own(const Model& model, int32_t index);

// The strengths that a filter may have; none of a kind that there is not.
struct StrengthRange {
  int32_t low, high;
};
StrengthRange strength_range(FilterKind kind);
bool filter_is_valid(const StageRecord& frame, const FilterRecord& filter);

}  // namespace pmt
