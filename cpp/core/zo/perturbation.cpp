#include "core/zo/perturbation.hpp"

#include "core/kernels/signs.hpp"
#include "core/zo/xorshift.hpp"

namespace pmt {
namespace {

constexpr int32_t block_signs = 128;  // of one Philox block

}  // namespace

SignStream::SignStream(Generator generator, const StreamId& id) : generator_(generator), id_(id) {
  if (generator == Generator::xorshift32) state_ = xorshift_start(id);
}

void SignStream::next(const Kernels& kernels, int32_t count, int8_t* signs) {
  if (generator_ == Generator::philox) {
    next_philox(kernels, count, signs);
  } else {
    next_xorshift(count, signs);
  }
}

void SignStream::skip(int32_t count) {
  if (generator_ == Generator::philox) {
    position_ += static_cast<uint32_t>(count);
    return;
  }
  for (; count >= 32; count -= 32) xorshift_bits(state_);
  for (; count > 0; --count) state_ = xorshift32(state_);
}

void SignStream::next_xorshift(int32_t count, int8_t* signs) {
  int32_t i = 0;
  for (; i + 32 <= count; i += 32) store_signs(xorshift_bits(state_), signs + i);
  for (; i < count; ++i) {
    state_ = xorshift32(state_);
    signs[i] = (state_ & 1u) ? -1 : 1;
  }
}

void SignStream::next_philox(const Kernels& kernels, int32_t count, int8_t* signs) {
  while (count > 0) {
    const auto start = static_cast<int32_t>(position_ % block_signs);
    const uint32_t block = position_ / block_signs;
    int32_t take = count / block_signs * block_signs;
    if (start == 0 && take > 0) {
      kernels.philox_signs(id_, block, take / block_signs, signs);
    } else {
      alignas(64) int8_t whole[block_signs];
      kernels.philox_signs(id_, block, 1, whole);
      take = count < block_signs - start ? count : block_signs - start;
      __builtin_memcpy(signs, whole + start, static_cast<uint32_t>(take));
    }
    position_ += static_cast<uint32_t>(take);
    signs += take;
    count -= take;
  }
}

}  // namespace pmt
