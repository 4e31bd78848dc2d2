// The losses of a head in float32: those of core/zo/loss.hpp, with residuals and curvature.
#pragma once

#include "core/zo/loss.hpp"
#include "core/zo/options.hpp"

namespace pmt {

// Whether a head can be solved for a loss: it is convex in the logits and known here.
bool is_head_loss(Loss loss);

// Derivatives of the loss by the logits, whose place they may take; returns the loss.
float head_residuals(Loss loss, const float* logits, int32_t classes, const Target& target, float* residuals);

// Second derivative of the loss at the logits along a direction.
float head_curvature(Loss loss, const float* logits, int32_t classes, const float* direction);

}  // namespace pmt
