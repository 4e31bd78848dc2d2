// Order of the samples and learning rate of each step of a training, as functions of the seed and the step alone.
#pragma once

#include <cstdint>

namespace pmt {

// Shuffles places into the order of an epoch (Fisher and Yates), by random numbers of the seed and the epoch.
void shuffle(uint32_t seed, uint32_t epoch, int32_t* places, int32_t count);

struct RateSchedule {
  float first;           // of the first step, more than 0
  float final_fraction;  // of it behind the last step, 0 to 1
  int64_t steps;         // of the training
};

// A cosine from the first rate to the final one (Loshchilov, Hutter 2017, arXiv:1608.03983), without libm.
float learning_rate(const RateSchedule& schedule, int64_t step);

}  // namespace pmt
