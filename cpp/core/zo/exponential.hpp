// Exponential and logarithm, the same bits on every target: no libm, basic float operations only.
#pragma once

namespace pmt {

// e^x for x <= 0; 0 below -87, NaN for NaN. Relative error below 3e-7.
float exp_negative(float x);

// Natural logarithm of x >= 1. Absolute error below 2e-7 * max(1, log x).
float log_at_least_one(float x);

// log(1 + e^x), and its derivative 1 / (1 + e^-x).
float softplus(float x);
float sigmoid(float x);

}  // namespace pmt
