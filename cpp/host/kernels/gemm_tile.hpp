// The inner product: a register tile of positions x vectors of channels over all taps.
#pragma once

#include <cstring>

#include "host/kernels/gemm_shape.hpp"

// Accumulators are registers only where every index is a constant.
#ifdef __clang__
#define PMT_UNROLL _Pragma("unroll")
#else
#define PMT_UNROLL _Pragma("GCC unroll 64")
#endif

namespace pmt::host {

// A row of the product, from the start of its block: bytes to its first tap, values to its output.
struct GemmRow {
  int64_t taps, output;
};

// Rows that share a band of input and panels of weights.
struct GemmRows {
  const uint8_t* band;
  int32_t segments, groups;  // of a row's taps
  int64_t pitch;             // bytes from a segment to the next
};

// Requantised sums. Modest (requantise_bounds.hpp): the sums start with the bias.
template <typename Isa, bool modest>
struct RequantiseSums {
  using Int32 = typename Isa::Int32;
  using Output = int8_t;
  typename Isa::Range range;
  const int32_t* bias;
  const float* scales;
  Output* output;  // of the block

  Int32 start(int32_t channel) const { return modest ? Isa::load(bias + channel) : Isa::zero(); }

  template <int rows, int width>
  void write(const GemmRow* row, const GemmLayout::Panel& panel, const Int32 (&sums)[rows * width]) const {
    constexpr int total = rows * width;
    const bool whole = panel.channels == width * Isa::lanes;
    const int32_t* biases = bias + panel.first_channel;
    const float* factors = scales + panel.first_channel;
    Output* const place = output + panel.first_channel;
    PMT_UNROLL
    for (int first = 0; first < total; first += 4) {
      Int32 rounded[4];
      PMT_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int index = first + i < total ? first + i : total - 1;
        const int column = index % width * Isa::lanes;
        if constexpr (modest) {
          rounded[i] = Isa::round_modest(sums[index], Isa::load_floats(factors + column));
        } else {
          const auto offset = Isa::to_float(Isa::load(biases + column));
          rounded[i] = Isa::round(Isa::real(sums[index], offset, Isa::load_floats(factors + column)), range);
        }
      }
      const typename Isa::Bytes outputs = Isa::narrow(rounded, range);
      if (__builtin_expect(whole, 1)) {
        constexpr int step = width % 4 == 0 ? 4 : (width % 2 == 0 ? 2 : 1);
        PMT_UNROLL
        for (int i = 0; i < 4; i += step) {
          if (first + i >= total) break;
          const int column = (first + i) % width * Isa::lanes;
          Isa::store_outputs(place + row[(first + i) / width].output + column, outputs, i, step);
        }
      } else {
        write_part<width>(place, row, panel.channels, outputs, first, total - first < 4 ? total - first : 4);
      }
    }
  }

 private:
  // `count` vectors from `first` on; those behind the last channel are cut.
  template <int width>
  __attribute__((noinline)) static void write_part(Output* place, const GemmRow* row, int32_t panel_channels,
                                                   const typename Isa::Bytes& outputs, int first, int count) {
    int8_t bytes[4 * Isa::lanes];
    Isa::store_outputs(bytes, outputs, 0, 4);
    for (int i = 0; i < count; ++i) {
      const int column = (first + i) % width * Isa::lanes;
      const int channels = panel_channels - column < Isa::lanes ? panel_channels - column : Isa::lanes;
      std::memcpy(place + row[(first + i) / width].output + column, bytes + i * Isa::lanes,
                  static_cast<size_t>(channels));
    }
  }
};

template <typename Isa>
struct ScaleSums {
  using Int32 = typename Isa::Int32;
  using Output = float;
  const int32_t* bias;
  const float* scales;
  Output* output;  // of the block

  Int32 start(int32_t) const { return Isa::zero(); }

  template <int rows, int width>
  void write(const GemmRow* row, const GemmLayout::Panel& panel, const Int32 (&sums)[rows * width]) const {
    PMT_UNROLL
    for (int r = 0; r < rows; ++r) {
      float reals[width * Isa::lanes];
      PMT_UNROLL
      for (int v = 0; v < width; ++v) {
        const int channel = panel.first_channel + v * Isa::lanes;
        const auto offset = Isa::to_float(Isa::load(bias + channel));
        const auto real = Isa::real(sums[r * width + v], offset, Isa::load_floats(scales + channel));
        Isa::store_floats(reals + v * Isa::lanes, real);
      }
      std::memcpy(output + row[r].output + panel.first_channel, reals,
                  static_cast<size_t>(panel.channels) * sizeof(float));
    }
  }
};

template <typename Isa, typename Epilogue, int rows, int width>
__attribute__((always_inline)) inline void gemm_tile(const GemmRow* row, const uint8_t* weights, const GemmRows& block,
                                                     const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  using Int32 = typename Isa::Int32;
  constexpr int vector_bytes = Isa::lanes * 4;
  Int32 sums[rows * width];
  PMT_UNROLL
  for (int v = 0; v < width; ++v) {
    Int32 start = epilogue.start(panel.first_channel + v * Isa::lanes);
    if (Isa::compensates) start = Isa::add(start, Isa::load(weights + v * vector_bytes));
    PMT_UNROLL
    for (int r = 0; r < rows; ++r) sums[r * width + v] = start;
  }
  if (Isa::compensates) weights += width * vector_bytes;
  int64_t taps[rows];
  PMT_UNROLL
  for (int r = 0; r < rows; ++r) taps[r] = row[r].taps;
  const uint8_t* segment = block.band;
  for (int32_t s = 0; s < block.segments; ++s, segment += block.pitch) {
    const uint8_t* const end =
        segment + block.groups * static_cast<int64_t>(Isa::group * sizeof(typename Isa::Activation));
    for (const uint8_t* k = segment; k < end; k += 4) {
      Int32 columns[width];
      PMT_UNROLL
      for (int v = 0; v < width; ++v) columns[v] = Isa::load(weights + v * vector_bytes);
      weights += width * vector_bytes;
      PMT_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Int32 activations = Isa::broadcast(k + taps[r]);
        PMT_UNROLL
        for (int v = 0; v < width; ++v) sums[r * width + v] = Isa::dot(sums[r * width + v], activations, columns[v]);
      }
    }
  }
  epilogue.template write<rows, width>(row, panel, sums);
}

// Not inlined, and with all it calls inlined: a tile wants the registers for itself.
template <typename Isa, typename Epilogue, int rows, int width>
[[gnu::noinline, gnu::flatten]] void gemm_tiles_of(const GemmRow* row, int32_t tiles, const uint8_t* weights,
                                                   const GemmRows& block, const GemmLayout::Panel& panel,
                                                   const Epilogue& epilogue) {
  const GemmRows input = block;
  const GemmLayout::Panel columns = panel;
  const Epilogue output = epilogue;
  for (; tiles > 0; --tiles, row += rows) gemm_tile<Isa, Epilogue, rows, width>(row, weights, input, columns, output);
}

// All rows: tiles of `rows`, then what is left in a smaller one.
template <typename Isa, typename Epilogue, int rows, int width>
void gemm_tiles(const GemmRow* row, int32_t count, const uint8_t* weights, const GemmRows& block,
                const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  const int32_t tiles = count / rows, left = count % rows;
  if (tiles > 0) gemm_tiles_of<Isa, Epilogue, rows, width>(row, tiles, weights, block, panel, epilogue);
  if constexpr (rows > 1) {
    if (left == 0) return;
    gemm_tiles<Isa, Epilogue, rows - 1, width>(row + tiles * rows, left, weights, block, panel, epilogue);
  }
}

template <typename Isa, typename Epilogue, int width>
void gemm_panel(const GemmRow* row, int32_t count, const uint8_t* weights, const GemmRows& block,
                const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  if constexpr (width > 1) {
    if (panel.width < width) {
      gemm_panel<Isa, Epilogue, width - 1>(row, count, weights, block, panel, epilogue);
      return;
    }
  }
  gemm_tiles<Isa, Epilogue, Isa::tile_rows(width), width>(row, count, weights, block, panel, epilogue);
}

}  // namespace pmt::host
