#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// clamp(values + mu * signs), paper Eq. 7.
Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high);

// The same where the value lies strictly between the bounds; elsewhere the value stays.
Vector<int8_t> perturb_free(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                            int32_t high);

// The signs of channels as one sign for each node of a plane of `positions` positions, in order.
Vector<int8_t> node_signs(const Vector<int8_t>& signs, size_t positions);

}  // namespace pmt::reference
