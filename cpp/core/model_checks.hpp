// The rules an op's record must keep; Model::open() applies them.
#pragma once

#include "core/model.hpp"

namespace pmt {

bool geometry_is_valid(const Model& model, const OpRecord& op);
bool quantisation_agrees(const Model& model, const OpRecord& op);
bool data_is_inside(const Model& model, const OpRecord& op);

}  // namespace pmt
