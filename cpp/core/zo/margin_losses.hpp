// Losses of the label's logit beside those of the other classes; fixed-point, see loss_units.hpp.
#pragma once

#include <cstdint>

namespace pmt {

// max(0, 1 + largest other logit - label's) (Crammer and Singer 2001).
int32_t hinge(const float* logits, int32_t classes, int32_t label);
void hinge_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient);

// Mean over the other classes of log(1 + e^(their logit - label's)) (pairwise logistic; Burges et al. 2005).
int32_t ranking(const float* logits, int32_t classes, int32_t label);
void ranking_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient);

// 1 unless the label is among the `top` largest logits, of equals the first. It has no gradient.
int32_t zero_one(const float* logits, int32_t classes, int32_t label, int32_t top);

}  // namespace pmt
