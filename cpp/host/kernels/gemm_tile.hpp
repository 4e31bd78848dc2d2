// The inner product: a register tile of positions x vectors of channels over all taps. What becomes of
// the sums is up to an epilogue (gemm_outputs.hpp).
#pragma once

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
        if constexpr (width == 2 && Isa::dots_in_pairs) {
          Isa::dot_pair(sums[2 * r], sums[2 * r + 1], activations, columns[0], columns[1]);
        } else {
          repeated<width>(
              [&](auto v) PMT_INLINE { sums[r * width + v] = Isa::dot(sums[r * width + v], activations, columns[v]); });
        }
      });
      taps.next();
    }
  }
  const Epilogue& end = Epilogue::template is_apart<width> ? *opaque(&epilogue) : epilogue;
  end.template write<rows, width>(tile, panel, sums);
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
