// The inner product: a register tile of positions x vectors of channels over all taps.
#pragma once

#include <cstring>

#include "host/kernels/gemm_shape.hpp"
#include "host/kernels/unrolled.hpp"

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

// Compiled anew for every instruction set.
namespace {

// Where the rows of a tile are: each on its own,
struct ListedRows {
  const GemmRow* row;

  template <int rows>
  struct Taps {
    int64_t offsets[rows];
    const uint8_t* group;

    explicit Taps(const ListedRows& tile) {
      PMT_UNROLL
      for (int r = 0; r < rows; ++r) offsets[r] = tile.row[r].taps;
    }
    void start(const uint8_t* segment) { group = segment; }
    const uint8_t* of(int r) const { return group + offsets[r]; }
    void next() { group += 4; }
  };

  int64_t output(int r) const { return row[r].output; }
  void advance(int rows) { row += rows; }
};

// or a constant step apart, which leaves the processor's registers to pointers.
struct EvenRows {
  GemmRow first, step;

  template <int rows>
  struct Taps {
    static constexpr int together = 4;  // rows that an address reaches from one pointer
    static constexpr int pointers = (rows + together - 1) / together;
    int64_t first, step;
    const uint8_t* groups[pointers];

    explicit Taps(const EvenRows& tile) : first(tile.first.taps), step(tile.step.taps) {}
    void start(const uint8_t* segment) {
      PMT_UNROLL
      for (int i = 0; i < pointers; ++i) groups[i] = segment + first + together * i * step;
    }
    const uint8_t* of(int r) const { return groups[r / together] + r % together * step; }
    void next() {
      PMT_UNROLL
      for (int i = 0; i < pointers; ++i) groups[i] += 4;
    }
  };

  int64_t output(int r) const { return first.output + r * step.output; }
  void advance(int rows) { first = {first.taps + rows * step.taps, first.output + rows * step.output}; }
};

}  // namespace

// Requantised sums. Modest (requantise_bounds.hpp): the sums start with the bias. Whole: the panel's
// channels fill its vectors.
template <typename Isa, bool modest, bool whole>
struct RequantiseSums {
  using Int32 = typename Isa::Int32;
  using Output = int8_t;
  typename Isa::Range range;
  const int32_t* bias;
  const float* scales;
  Output* output;  // of the block

  Int32 start(int32_t channel) const { return modest ? Isa::load(bias + channel) : Isa::zero(); }

  template <int rows, int width, typename Rows>
  void write(const Rows& tile, const GemmLayout::Panel& panel, const Int32 (&sums)[rows * width]) const {
    constexpr int total = rows * width;
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
      if constexpr (whole) {
        constexpr int step = width % 4 == 0 ? 4 : (width % 2 == 0 ? 2 : 1);
        PMT_UNROLL
        for (int i = 0; i < 4; i += step) {
          if (first + i >= total) break;
          const int column = (first + i) % width * Isa::lanes;
          Isa::store_outputs(place + tile.output((first + i) / width) + column, outputs, i, step);
        }
      } else if constexpr (Isa::stores_parts) {
        PMT_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (first + i >= total) break;
          const int column = (first + i) % width * Isa::lanes;
          Isa::store_part(place + tile.output((first + i) / width) + column, outputs, i, panel.channels - column);
        }
      } else {
        write_part<width>(place, tile, panel.channels, outputs, first, total - first < 4 ? total - first : 4);
      }
    }
  }

 private:
  // `count` vectors from `first` on; those behind the last channel are cut.
  template <int width, typename Rows>
  __attribute__((noinline)) static void write_part(Output* place, const Rows& tile, int32_t panel_channels,
                                                   const typename Isa::Bytes& outputs, int first, int count) {
    int8_t bytes[4 * Isa::lanes];
    Isa::store_outputs(bytes, outputs, 0, 4);
    for (int i = 0; i < count; ++i) {
      const int column = (first + i) % width * Isa::lanes;
      const int channels = panel_channels - column < Isa::lanes ? panel_channels - column : Isa::lanes;
      std::memcpy(place + tile.output((first + i) / width) + column, bytes + i * Isa::lanes,
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

  template <int rows, int width, typename Rows>
  void write(const Rows& tile, const GemmLayout::Panel& panel, const Int32 (&sums)[rows * width]) const {
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
      std::memcpy(output + tile.output(r) + panel.first_channel, reals,
                  static_cast<size_t>(panel.channels) * sizeof(float));
    }
  }
};

template <typename Isa, typename Epilogue, typename Rows, int rows, int width>
PMT_INLINE inline void gemm_tile(const Rows& tile, const uint8_t* weights, const GemmRows& block,
                                 const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  using Int32 = typename Isa::Int32;
  constexpr int vector_bytes = Isa::lanes * 4;
  Int32 sums[rows * width];
  repeated<width>([&](auto v) PMT_INLINE {
    Int32 start = epilogue.start(panel.first_channel + v * Isa::lanes);
    if constexpr (Isa::compensates) start = Isa::add(start, Isa::load(weights + v * vector_bytes));
    repeated<rows>([&](auto r) PMT_INLINE { sums[r * width + v] = start; });
  });
  if (Isa::compensates) weights += width * vector_bytes;
  typename Rows::template Taps<rows> taps(tile);
  const uint8_t* segment = block.band;
  for (int32_t s = 0; s < block.segments; ++s, segment += block.pitch) {
    taps.start(segment);
    for (int32_t group = block.groups; group > 0; --group) {
      Int32 columns[width];
      repeated<width>([&](auto v) PMT_INLINE { columns[v] = Isa::load(weights + v * vector_bytes); });
      weights += width * vector_bytes;
      repeated<rows>([&](auto r) PMT_INLINE {
        const Int32 activations = Isa::broadcast(taps.of(r));
        repeated<width>(
            [&](auto v) PMT_INLINE { sums[r * width + v] = Isa::dot(sums[r * width + v], activations, columns[v]); });
      });
      taps.next();
    }
  }
  epilogue.template write<rows, width>(tile, panel, sums);
}

// Not inlined, and with all it calls inlined: a tile wants the registers for itself.
template <typename Isa, typename Epilogue, typename Rows, int rows, int width>
PMT_FLATTEN void gemm_tiles_of(const Rows& first, int32_t tiles, const uint8_t* weights, const GemmRows& block,
                               const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  const GemmRows input = block;
  const GemmLayout::Panel columns = panel;
  const Epilogue output = epilogue;
  Rows tile = first;
  for (; tiles > 0; --tiles, tile.advance(rows)) {
    gemm_tile<Isa, Epilogue, Rows, rows, width>(tile, weights, input, columns, output);
  }
}

// All rows: tiles of `rows`, then what is left in smaller ones.
template <typename Isa, typename Epilogue, typename Rows, int rows, int width>
void gemm_tiles(Rows tile, int32_t count, const uint8_t* weights, const GemmRows& block, const GemmLayout::Panel& panel,
                const Epilogue& epilogue) {
  const int32_t tiles = count / rows, left = count % rows;
  if (tiles > 0) gemm_tiles_of<Isa, Epilogue, Rows, rows, width>(tile, tiles, weights, block, panel, epilogue);
  if constexpr (rows > 1) {
    if (left == 0) return;
    constexpr int fewer = rows > 8 ? 8 : (rows > 4 ? 4 : (rows > 2 ? 2 : 1));
    tile.advance(tiles * rows);
    gemm_tiles<Isa, Epilogue, Rows, fewer, width>(tile, left, weights, block, panel, epilogue);
  }
}

template <typename Isa, typename Epilogue, typename Rows, int width>
void gemm_panel(const Rows& tile, int32_t count, const uint8_t* weights, const GemmRows& block,
                const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  if constexpr (width > 1) {
    if (panel.width < width) {
      gemm_panel<Isa, Epilogue, Rows, width - 1>(tile, count, weights, block, panel, epilogue);
      return;
    }
  }
  gemm_tiles<Isa, Epilogue, Rows, Isa::tile_rows(width), width>(tile, count, weights, block, panel, epilogue);
}

}  // namespace pmt::host
