// The register tile of the packed product: some output positions by one panel of channels. A
// position's activations are `segments` runs in a buffer (one per kernel row; a single one where the
// layer is pointwise), each a whole number of groups long in the weights.
#pragma once

namespace pmt::host {

// One call's view of the activations.
template <typename Isa>
struct Activations {
  const typename Isa::Activation* first;
  int32_t segments;
  int32_t segment_groups;
  int32_t segment_stride;  // from a run to the next, in activations
};

// Channels that share their packed weights.
template <typename Isa>
struct Panel {
  const typename Isa::Weight* weights;
  const int32_t* compensation;
  const int32_t* bias;
  const float* scales;
  int32_t channels;
  int32_t columns;  // vectors they take
};

template <typename Isa, int32_t Rows, int32_t Columns>
inline void tile_sums(const Activations<Isa>& activations, const int32_t* offsets, const Panel<Isa>& panel,
                      typename Isa::Int32 (&sums)[Rows][Columns]) {
  const typename Isa::Activation* position[Rows];
  for (int32_t r = 0; r < Rows; ++r) position[r] = activations.first + offsets[r];
  for (int32_t c = 0; c < Columns; ++c) {
    const auto start = Isa::compensates ? Isa::load(panel.compensation + c * Isa::lanes) : Isa::zero();
    for (int32_t r = 0; r < Rows; ++r) sums[r][c] = start;
  }
  const typename Isa::Weight* weights = panel.weights;
  for (int32_t segment = 0; segment < activations.segments; ++segment) {
    for (int32_t k = 0; k < activations.segment_groups; ++k) {
      typename Isa::Int32 columns[Columns];
      for (int32_t c = 0; c < Columns; ++c) columns[c] = Isa::load_weights(weights + c * Isa::lanes * Isa::group);
      weights += Columns * Isa::lanes * Isa::group;
      for (int32_t r = 0; r < Rows; ++r) {
        const auto group = Isa::broadcast(position[r] + k * Isa::group);
        for (int32_t c = 0; c < Columns; ++c) sums[r][c] = Isa::dot(sums[r][c], group, columns[c]);
      }
    }
    for (int32_t r = 0; r < Rows; ++r) position[r] += activations.segment_stride;
  }
}

// Requantised outputs at any place.
template <typename Isa>
struct Int8Output {
  typename Isa::Range range;
  int8_t* first;           // at the panel's first channel
  const int32_t* offsets;  // of every position

  template <int32_t Rows, int32_t Columns>
  void store(const Panel<Isa>& panel, int32_t position, const typename Isa::Int32 (&sums)[Rows][Columns]) const {
    constexpr int32_t width = Columns * Isa::lanes;
    int8_t* rows[Rows];
    if (panel.channels == width) {
      for (int32_t r = 0; r < Rows; ++r) rows[r] = first + offsets[position + r];
      Isa::requantise(sums, panel.bias, panel.scales, range, rows);
      return;
    }
    int8_t whole[Rows][width];
    for (int32_t r = 0; r < Rows; ++r) rows[r] = whole[r];
    Isa::requantise(sums, panel.bias, panel.scales, range, rows);
    for (int32_t r = 0; r < Rows; ++r) {
      __builtin_memcpy(first + offsets[position + r], whole[r], static_cast<size_t>(panel.channels));
    }
  }
};

// (float(sum) + float(bias)) * scale, a row of floats for every position.
template <typename Isa>
struct LogitOutput {
  float* first;
  int32_t stride;  // from a position to the next

  template <int32_t Rows, int32_t Columns>
  void store(const Panel<Isa>& panel, int32_t position, const typename Isa::Int32 (&sums)[Rows][Columns]) const {
    for (int32_t r = 0; r < Rows; ++r) {
      float row[Columns * Isa::lanes];
      for (int32_t c = 0; c < Columns; ++c) {
        const int32_t lane = c * Isa::lanes;
        const auto bias = Isa::to_float(Isa::load(panel.bias + lane));
        Isa::store_floats(Isa::scaled(sums[r][c], bias, Isa::load_floats(panel.scales + lane)), row + lane);
      }
      const auto bytes = static_cast<size_t>(panel.channels) * sizeof(float);
      __builtin_memcpy(first + static_cast<int64_t>(position + r) * stride, row, bytes);
    }
  }
};

// `tiles` tiles of Rows positions each. Not inlined: a tile wants the registers for itself.
template <typename Isa, int32_t Rows, int32_t Columns, typename Output>
[[gnu::noinline]] void whole_tiles(const Activations<Isa>& activations, const int32_t* offsets, const Panel<Isa>& panel,
                                   const Output& output, int32_t position, int32_t tiles) {
  const Activations<Isa> view = activations;
  const Panel<Isa> weights = panel;
  const Output to = output;
  for (int32_t tile = 0; tile < tiles; ++tile) {
    typename Isa::Int32 sums[Rows][Columns];
    tile_sums<Isa, Rows, Columns>(view, offsets + position, weights, sums);
    to.store(weights, position, sums);
    position += Rows;
  }
}

// Tiles of `rows` positions, 1..Rows.
template <typename Isa, int32_t Rows, int32_t Columns, typename Output>
inline void run_tiles(int32_t rows, const Activations<Isa>& activations, const int32_t* offsets,
                      const Panel<Isa>& panel, const Output& output, int32_t position, int32_t tiles) {
  if (rows == Rows) {
    whole_tiles<Isa, Rows, Columns>(activations, offsets, panel, output, position, tiles);
  } else if constexpr (Rows > 1) {
    run_tiles<Isa, Rows - 1, Columns>(rows, activations, offsets, panel, output, position, tiles);
  }
}

// All positions by one panel, in as few tiles as will do, of two neighbouring heights.
template <typename Isa, int32_t Columns = Isa::columns, typename Output>
inline void run_panel(const Activations<Isa>& activations, const int32_t* offsets, int32_t positions,
                      const Panel<Isa>& panel, const Output& output) {
  if (panel.columns == Columns) {
    constexpr int32_t most = Isa::rows(Columns);
    const int32_t tiles = (positions + most - 1) / most;
    const int32_t rows = positions / tiles, higher = positions % tiles;
    const int32_t lower = tiles - higher;
    run_tiles<Isa, most, Columns>(rows, activations, offsets, panel, output, 0, lower);
    if (higher == 0) return;
    run_tiles<Isa, most, Columns>(rows + 1, activations, offsets, panel, output, lower * rows, higher);
  } else if constexpr (Columns > 1) {
    run_panel<Isa, Columns - 1>(activations, offsets, positions, panel, output);
  }
}

}  // namespace pmt::host
