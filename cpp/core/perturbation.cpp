#include "core/perturbation.hpp"

#include "core/arithmetic.hpp"

namespace pmt {
namespace {

// Spreads 4 bits over 4 bytes; bit 0 gives +1, bit 1 gives -1, as in the paper's rademacher().
inline uint32_t four_signs(uint32_t bits) {
  const uint32_t spread = ((bits & 15u) * 0x00204081u) & 0x01010101u;
  return 0x01010101u ^ (spread * 0xFEu);
}

inline void store_word(uint32_t word, int8_t* signs) {
  for (int i = 0; i < 8; ++i) {
    const uint32_t four = four_signs(word >> (4 * i));
    __builtin_memcpy(signs + 4 * i, &four, 4);
  }
}

}  // namespace

SignStream::SignStream(Generator generator, const StreamId& id) : generator_(generator), id_(id) {
  if (generator == Generator::xorshift32) state_ = xorshift_start(id);
}

void SignStream::next(int32_t count, int8_t* signs) {
  if (generator_ == Generator::philox) {
    next_philox(count, signs);
    return;
  }
  for (int32_t i = 0; i < count; ++i) {
    state_ = xorshift32(state_);
    signs[i] = (state_ & 1u) ? -1 : 1;
  }
}

void SignStream::next_philox(int32_t count, int8_t* signs) {
  while (count > 0) {
    const Random128 block = random_block(id_, position_ / 128);
    const int32_t start = static_cast<int32_t>(position_ % 128);
    if (start == 0 && count >= 128) {
      for (int i = 0; i < 4; ++i) store_word(block.word[i], signs + 32 * i);
      position_ += 128;
      signs += 128;
      count -= 128;
      continue;
    }
    alignas(4) int8_t whole[128];
    for (int i = 0; i < 4; ++i) store_word(block.word[i], whole + 32 * i);
    const int32_t take = count < 128 - start ? count : 128 - start;
    __builtin_memcpy(signs, whole + start, static_cast<uint32_t>(take));
    position_ += static_cast<uint32_t>(take);
    signs += take;
    count -= take;
  }
}

void perturb(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
             int8_t* perturbed) {
  for (int32_t i = 0; i < count; ++i) {
    perturbed[i] = static_cast<int8_t>(clamp(values[i] + mu * signs[i], low, high));
  }
}

void accumulate_signs(const int8_t* signs, int32_t count, int32_t factor, int32_t* sum) {
  for (int32_t i = 0; i < count; ++i) sum[i] += factor * signs[i];
}

}  // namespace pmt
