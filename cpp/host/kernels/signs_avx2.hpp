// Philox signs, eight blocks at once, and what is done with signs: 256-bit code of every x86 table.
// Include where the compiler's target is AVX2 or more, after the headers of the core.
#pragma once

#include <immintrin.h>

#include "core/base/arithmetic.hpp"
#include "core/kernels/table.hpp"

namespace pmt::host {
namespace {

struct SignsAvx2 {
  static void philox_signs(const StreamId& id, uint32_t first_block, int32_t blocks, int8_t* signs) {
    for (int32_t done = 0; done < blocks; done += 8) {
      const uint32_t index = first_block + static_cast<uint32_t>(done);
      const int32_t left = blocks - done;
      FourBlocks first = open(id, index);
      if (left <= 4) {
        draw(id, first);
        store(first, left, signs + block_signs * done);
        return;
      }
      FourBlocks second = open(id, index + 4);
      draw(id, first, second);
      store(first, 4, signs + block_signs * done);
      store(second, left < 8 ? left - 4 : 4, signs + block_signs * (done + 4));
    }
  }

  // |mu| <= 127. Saturating at int8 before the clamp changes nothing: low and high are int8 themselves.
  static void perturb(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
                      int8_t* perturbed) {
    const __m256i step = _mm256_set1_epi8(static_cast<int8_t>(mu));
    const __m256i least = _mm256_set1_epi8(static_cast<int8_t>(low));
    const __m256i most = _mm256_set1_epi8(static_cast<int8_t>(high));
    int32_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const __m256i moved = _mm256_adds_epi8(load256(values + i), _mm256_sign_epi8(step, load256(signs + i)));
      const __m256i bounded = _mm256_min_epi8(_mm256_max_epi8(moved, least), most);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(perturbed + i), bounded);
    }
    for (; i + 8 <= count; i += 8) {  // values may be perturbed in place: a last vector must not overlap
      const __m128i delta = _mm_sign_epi8(_mm256_castsi256_si128(step), load64(signs + i));
      const __m128i moved = _mm_adds_epi8(load64(values + i), delta);
      const __m128i raised = _mm_max_epi8(moved, _mm256_castsi256_si128(least));
      const __m128i bounded = _mm_min_epi8(raised, _mm256_castsi256_si128(most));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(perturbed + i), bounded);
    }
    for (; i < count; ++i) perturbed[i] = static_cast<int8_t>(clamp(values[i] + mu * signs[i], low, high));
  }

  static void accumulate_signs(const int8_t* signs, int32_t count, int32_t factor, int32_t* sums) {
    const __m256i factors = _mm256_set1_epi32(factor);
    int32_t i = 0;
    for (; i + 8 <= count; i += 8) {
      auto* eight = reinterpret_cast<__m256i*>(sums + i);
      const __m256i signed_factors = _mm256_sign_epi32(factors, _mm256_cvtepi8_epi32(load64(signs + i)));
      _mm256_storeu_si256(eight, _mm256_add_epi32(_mm256_loadu_si256(eight), signed_factors));
    }
    for (; i < count; ++i) sums[i] += factor * signs[i];
  }

 private:
  static constexpr int32_t block_signs = 128;
  static constexpr int32_t rounds = 10;

  // Each word in the low half of a 64-bit lane, where vpmuludq takes its factors and leaves the low
  // half of its product. Nothing reads the high halves before store(), so they stay dirty.
  struct FourBlocks {
    __m256i word[4];
  };

  struct Keys {
    __m256i first, second;

    explicit Keys(const StreamId& id) : first(all(id.seed)), second(all(id.step)) {}

    void bump() {
      first = _mm256_add_epi32(first, all(0x9E3779B9u));
      second = _mm256_add_epi32(second, all(0xBB67AE85u));
    }
  };

  static __m256i load256(const int8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static __m128i load64(const int8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }

  static __m256i all(uint32_t word) { return _mm256_set1_epi32(static_cast<int32_t>(word)); }

  // The counters of blocks index .. index + 3, as random_block() makes them.
  static FourBlocks open(const StreamId& id, uint32_t index) {
    const uint32_t purpose_and_query = (static_cast<uint32_t>(id.purpose) << 16) | id.query;
    const __m256i indices = _mm256_add_epi32(all(index), _mm256_setr_epi32(0, 0, 1, 0, 2, 0, 3, 0));
    return {{indices, all(id.sample), all(id.layer), all(purpose_and_query)}};
  }

  static void philox_round(const Keys& keys, FourBlocks& blocks) {
    const __m256i product0 = _mm256_mul_epu32(blocks.word[0], all(0xD2511F53u));
    const __m256i product1 = _mm256_mul_epu32(blocks.word[2], all(0xCD9E8D57u));
    blocks.word[0] = _mm256_xor_si256(_mm256_srli_epi64(product1, 32), _mm256_xor_si256(blocks.word[1], keys.first));
    blocks.word[1] = product1;
    blocks.word[2] = _mm256_xor_si256(_mm256_srli_epi64(product0, 32), _mm256_xor_si256(blocks.word[3], keys.second));
    blocks.word[3] = product0;
  }

  // A round waits for its multiplications: several groups in one loop fill the wait.
  template <typename... Groups>
  static void draw(const StreamId& id, Groups&... groups) {
    Keys keys(id);
#pragma GCC unroll 1
    for (int32_t round = 0; round < rounds; ++round) {
      (philox_round(keys, groups), ...);
      keys.bump();
    }
  }

  // The signs of the first `count` of four blocks.
  static void store(const FourBlocks& blocks, int32_t count, int8_t* signs) {
    const __m256i low = _mm256_blend_epi32(blocks.word[0], _mm256_slli_epi64(blocks.word[1], 32), 0xAA);
    const __m256i high = _mm256_blend_epi32(blocks.word[2], _mm256_slli_epi64(blocks.word[3], 32), 0xAA);
    const __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
    alignas(32) __m128i bits[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits), _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits + 2), _mm256_permute2x128_si256(even, odd, 0x31));
    for (int32_t i = 0; i < count; ++i) {
      store_block(_mm256_broadcastsi128_si256(_mm_load_si128(bits + i)), signs + block_signs * i);
    }
  }

  static void store_block(__m256i bits, int8_t* signs) {
    // Byte i of the shuffled vector is the byte that holds bit i, bit i % 8 of which is tested.
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i next_word = _mm256_set1_epi8(4);
    const __m256i tested = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
    __m256i control = bytes;
    for (int32_t word = 0; word < 4; ++word) {
      const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(bits, control), tested);
      const __m256i minus = _mm256_cmpeq_epi8(spread, tested);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(signs + 32 * word), _mm256_or_si256(minus, _mm256_set1_epi8(1)));
      control = _mm256_add_epi8(control, next_word);
    }
  }
};

}  // namespace
}  // namespace pmt::host
