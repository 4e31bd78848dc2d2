#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// clamp(values + mu * signs), paper Eq. 7.
Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high);

// The same where the value lies strictly between the bounds; elsewhere the value stays.
Vector<int8_t> perturb_free(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                            int32_t high);

// Index of the region, of `regions` along a side, in which a position of that side lies.
size_t region_of(size_t position, size_t side, size_t regions);

// signs[row][column][channel] of regions as one sign for each node of a plane, in order.
Vector<int8_t> node_signs(const xt::xtensor<int8_t, 3>& signs, size_t height, size_t width);

}  // namespace pmt::reference
