// The linear map that gives vectors of one covariance another one and moves them least: the optimal
// transport between two normal distributions (Olkin and Pukelsheim 1982; Peyre and Cuturi 2019,
// arXiv:1803.00567, remark 2.31).
#pragma once

#include <cstdint>

namespace pmt {

// Share of the mean variance that is added to both covariances: it keeps directions that hold next to
// nothing from being blown up.
constexpr float transport_ridge = 0.003f;

constexpr int64_t transport_floats(int64_t n) { return 4 * n * n + n; }

// map = found^-1/2 (found^1/2 reference found^1/2)^1/2 found^-1/2, symmetric; all n x n. Both
// covariances have a mean variance of 1. `scratch` takes transport_floats(n).
void transport_map(int32_t n, const float* reference, const float* found, float* map, float* scratch);

}  // namespace pmt
