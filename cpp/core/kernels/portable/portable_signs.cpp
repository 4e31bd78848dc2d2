#include "core/base/arithmetic.hpp"
#include "core/kernels/portable/portable.hpp"
#include "core/kernels/signs.hpp"

namespace pmt::portable {

void philox_signs(const StreamId& id, uint32_t first_block, int32_t blocks, int8_t* signs) {
  for (int32_t block = 0; block < blocks; ++block) {
    const Random128 bits = random_block(id, first_block + static_cast<uint32_t>(block));
    for (int i = 0; i < 4; ++i) store_signs(bits.word[i], signs + 128 * block + 32 * i);
  }
}

void perturb(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
             int8_t* perturbed) {
  for (int32_t i = 0; i < count; ++i) {
    perturbed[i] = static_cast<int8_t>(clamp(values[i] + mu * signs[i], low, high));
  }
}

void accumulate_signs(const int8_t* signs, int32_t count, int32_t factor, int32_t* sums) {
  for (int32_t i = 0; i < count; ++i) sums[i] += factor * signs[i];
}

void outer_product(const OuterProductArgs& args) {
  for (int32_t p = 0; p < args.positions; ++p) {
    const int32_t* gradient = args.gradient + p * args.channels;
    const int16_t* patch = args.patches + p * args.taps;
    for (int32_t c = 0; c < args.channels; ++c) {
      const int64_t factor = gradient[c];
      if (factor == 0) continue;
      int64_t* row = args.sums + static_cast<int64_t>(c) * args.taps;
      for (int32_t k = 0; k < args.taps; ++k) row[k] += factor * patch[k];
    }
  }
}

}  // namespace pmt::portable
