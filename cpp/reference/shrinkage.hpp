// Measured gradient-norm scaling, in double.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// Share of the squared norm of `sums` that the sums' noise is expected to have: every difference d of
// a sample, [sample][query], adds d^2 * freedom[sample].
double noise_share(const xt::xtensor<double, 2>& differences, const Vector<double>& freedom,
                   const Vector<double>& sums);

}  // namespace pmt::reference
