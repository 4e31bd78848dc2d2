// Weights of depthwise_conv2d into the entries of depthwise_quads.hpp, perturbed on the way.
#pragma once

#include "host/kernels/depthwise_quads.hpp"
#include "host/kernels/isa_avx512_vnni.hpp"
#include "host/kernels/unrolled.hpp"
#include "host/kernels/x86.hpp"

namespace pmt::host {
namespace {

// Entries of depthwise_quads.hpp, of pixels and of weights.
struct EntryAvx512Vnni {
  static constexpr int32_t parts = 4;  // of a vector, 16 bytes each

  // Four rows become the vectors of an entry. `flips` are XORed.
  static void store(const __m512i (&rows)[DepthwiseQuads::rows], __m512i flips, void* to) {
    const __m512i low_ab = _mm512_unpacklo_epi8(rows[0], rows[1]), high_ab = _mm512_unpackhi_epi8(rows[0], rows[1]);
    const __m512i low_cd = _mm512_unpacklo_epi8(rows[2], rows[3]), high_cd = _mm512_unpackhi_epi8(rows[2], rows[3]);
    const __m512i vectors[DepthwiseQuads::vectors] = {
        _mm512_unpacklo_epi16(low_ab, low_cd), _mm512_unpackhi_epi16(low_ab, low_cd),
        _mm512_unpacklo_epi16(high_ab, high_cd), _mm512_unpackhi_epi16(high_ab, high_cd)};
    unrolled<DepthwiseQuads::vectors>([&](auto k) PMT_INLINE {
      Avx512Vnni::store(static_cast<uint8_t*>(to) + k * DepthwiseQuads::vector_bytes,
                        _mm512_xor_si512(vectors[k], flips));
    });
  }

  static __m512i joined(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m512i first = _mm512_inserti32x4(_mm512_castsi128_si512(a), b, 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(first, c, 2), d, 3);
  }
};

class DepthwisePackingAvx512Vnni {
 public:
  static void pack(const PackArgs& args) {
    const DepthwiseQuads quads(args.shape.window, args.shape.in, args.shape.out);
    auto* to = static_cast<uint8_t*>(args.packed);
    for (int32_t done = 0; done < quads.channels;) {
      const DepthwiseQuads::Block block = quads.block(done);
      for (int32_t variant = 0; variant < quads.variants; ++variant, to += quads.variant_bytes()) {
        DepthwisePackingAvx512Vnni(args, quads, block).pack_variant(variant, to);
      }
      done = DepthwiseQuads::end_of(block);
    }
  }

 private:
  using Quads = DepthwiseQuads;
  using Isa = Avx512Vnni;
  DepthwisePackingAvx512Vnni(const PackArgs& args, const Quads& quads, const Quads::Block& block)
      : args_(args), quads_(quads), block_(block) {}

  void pack_variant(int32_t variant, uint8_t* packed) const {
    uint8_t* to = packed + Quads::entry_bytes;
    __m512i sums[Quads::vectors] = {};
    for (int32_t quad = 0; quad < quads_.quads; ++quad) {
      for (int32_t phase = 0; phase < quads_.phases; ++phase) {
        for (int32_t kx = phase; kx < quads_.window.kernel_w; kx += quads_.window.stride_w, to += Quads::entry_bytes) {
          pack_entry(variant, quad, kx, to);
          for (int32_t k = 0; k < Quads::vectors; ++k) {
            sums[k] = Isa::dot(sums[k], _mm512_set1_epi8(1), Isa::load(to + k * Quads::vector_bytes));
          }
        }
      }
    }
    for (int32_t k = 0; k < Quads::vectors; ++k) {
      Isa::store(packed + k * Quads::vector_bytes, Isa::multiply(sums[k], -(args_.input_zero + 128)));
    }
  }

  void pack_entry(int32_t variant, int32_t quad, int32_t kx, uint8_t* to) const {
    __m512i rows[Quads::rows];
    for (int32_t row = 0; row < Quads::rows; ++row) rows[row] = kernel_row(quads_.kernel_row(variant, quad, row), kx);
    EntryAvx512Vnni::store(rows, _mm512_setzero_si512(), to);
  }

  // The block's weights at a place of the window, 0 outside of it.
  __m512i kernel_row(int32_t ky, int32_t kx) const {
    if (ky < 0 || ky >= quads_.window.kernel_h) return _mm512_setzero_si512();
    const int32_t first = (ky * quads_.window.kernel_w + kx) * quads_.channels + block_.first;
    const int32_t wrap = block_.size - 1;
    return EntryAvx512Vnni::joined(part(first), part(first + (16 & wrap)), part(first + (32 & wrap)),
                                   part(first + (48 & wrap)));
  }

  __m128i part(int32_t index) const {
    const __m128i weights = load(args_.weights + index);
    return args_.signs == nullptr ? weights : Isa::perturb_taps(weights, load(args_.signs + index), args_.mu);
  }
  __m128i load(const int8_t* values) const {
    return quads_.channels >= 16 ? PixelX86::load<true>(values, 16) : PixelX86::load<false>(values, quads_.channels);
  }

  const PackArgs& args_;
  const DepthwiseQuads& quads_;
  const Quads::Block block_;
};

}  // namespace
}  // namespace pmt::host
