#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// clamp(values + mu * signs), paper Eq. 7.
Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high);

}  // namespace pmt::reference
