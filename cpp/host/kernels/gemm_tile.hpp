// The inner product: a register tile of positions x vectors of channels over all taps.
#pragma once

#include <cstring>

#include "host/kernels/gemm_shape.hpp"

namespace pmt::host {

// A row of the product: its first tap, and its output.
template <typename Isa, typename Output>
struct GemmRow {
  const typename Isa::Activation* taps;
  Output* output;
};

// The walk over the taps of a row.
struct TapWalk {
  int32_t segments, groups;
  int64_t pitch;  // bytes from a segment to the next
};

template <typename Isa>
struct RequantiseSums {
  using Output = int8_t;
  const float* bias;
  const float* scales;
  typename Isa::Range range;

  template <int rows, int width>
  void write(const GemmRow<Isa, Output>* row, const GemmLayout::Panel& panel,
             const typename Isa::Int32 (&sums)[rows * width]) const {
    constexpr int total = rows * width;
    const bool whole = panel.channels == width * Isa::lanes;
    for (int first = 0; first < total; first += 4) {
      typename Isa::Int32 rounded[4];
      for (int i = 0; i < 4; ++i) {
        const int index = first + i < total ? first + i : total - 1;
        const int channel = panel.first_channel + index % width * Isa::lanes;
        const auto real = Isa::real(sums[index], Isa::load_floats(bias + channel), Isa::load_floats(scales + channel));
        rounded[i] = Isa::round(real, range);
      }
      const typename Isa::Bytes bytes = Isa::narrow(rounded, range);
      if (whole) {
        constexpr int step = width % 4 == 0 ? 4 : (width % 2 == 0 ? 2 : 1);
        for (int i = 0; i < 4 && first + i < total; i += step) {
          Isa::store_outputs(place<width>(row, panel, first + i), bytes, i, step);
        }
      } else {
        int8_t outputs[4 * Isa::lanes];
        Isa::store_outputs(outputs, bytes, 0, 4);
        for (int i = 0; i < 4 && first + i < total; ++i) {
          const int column = (first + i) % width * Isa::lanes;
          const int count = panel.channels - column < Isa::lanes ? panel.channels - column : Isa::lanes;
          std::memcpy(place<width>(row, panel, first + i), outputs + i * Isa::lanes, static_cast<size_t>(count));
        }
      }
    }
  }

 private:
  template <int width>
  static int8_t* place(const GemmRow<Isa, Output>* row, const GemmLayout::Panel& panel, int index) {
    return row[index / width].output + panel.first_channel + index % width * Isa::lanes;
  }
};

template <typename Isa>
struct ScaleSums {
  using Output = float;
  const float* bias;
  const float* scales;

  template <int rows, int width>
  void write(const GemmRow<Isa, Output>* row, const GemmLayout::Panel& panel,
             const typename Isa::Int32 (&sums)[rows * width]) const {
    for (int r = 0; r < rows; ++r) {
      float reals[width * Isa::lanes];
      for (int v = 0; v < width; ++v) {
        const int channel = panel.first_channel + v * Isa::lanes;
        Isa::store_floats(reals + v * Isa::lanes, Isa::real(sums[r * width + v], Isa::load_floats(bias + channel),
                                                            Isa::load_floats(scales + channel)));
      }
      std::memcpy(row[r].output + panel.first_channel, reals, static_cast<size_t>(panel.channels) * sizeof(float));
    }
  }
};

template <typename Isa, typename Epilogue, int rows, int width>
void gemm_tile(const GemmRow<Isa, typename Epilogue::Output>* row, const uint8_t* weights, const TapWalk& walk,
               const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  using Int32 = typename Isa::Int32;
  constexpr int vector_bytes = Isa::lanes * 4;
  Int32 sums[rows * width];
  for (int v = 0; v < width; ++v) {
    const Int32 start = Isa::compensates ? Isa::load(weights + v * vector_bytes) : Isa::zero();
    for (int r = 0; r < rows; ++r) sums[r * width + v] = start;
  }
  if (Isa::compensates) weights += width * vector_bytes;
  const uint8_t* taps[rows];
  for (int r = 0; r < rows; ++r) taps[r] = reinterpret_cast<const uint8_t*>(row[r].taps);
  int64_t segment = 0;
  for (int32_t s = 0; s < walk.segments; ++s, segment += walk.pitch) {
    const int64_t end = segment + walk.groups * static_cast<int64_t>(Isa::group * sizeof(typename Isa::Activation));
    for (int64_t k = segment; k < end; k += 4) {
      Int32 columns[width];
      for (int v = 0; v < width; ++v) columns[v] = Isa::load(weights + v * vector_bytes);
      weights += width * vector_bytes;
      for (int r = 0; r < rows; ++r) {
        const Int32 activations = Isa::broadcast(taps[r] + k);
        for (int v = 0; v < width; ++v) sums[r * width + v] = Isa::dot(sums[r * width + v], activations, columns[v]);
      }
    }
  }
  epilogue.template write<rows, width>(row, panel, sums);
}

// As many rows as are left, at most `rows`.
template <typename Isa, typename Epilogue, int rows, int width>
void gemm_rows(const GemmRow<Isa, typename Epilogue::Output>* row, int32_t count, const uint8_t* weights,
               const TapWalk& walk, const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  if constexpr (rows > 1) {
    if (count < rows) {
      gemm_rows<Isa, Epilogue, rows - 1, width>(row, count, weights, walk, panel, epilogue);
      return;
    }
  }
  gemm_tile<Isa, Epilogue, rows, width>(row, weights, walk, panel, epilogue);
}

template <typename Isa, typename Epilogue, int width>
void gemm_panel(const GemmRow<Isa, typename Epilogue::Output>* row, int32_t count, const uint8_t* weights,
                const TapWalk& walk, const GemmLayout::Panel& panel, const Epilogue& epilogue) {
  if constexpr (width > 1) {
    if (panel.width < width) {
      gemm_panel<Isa, Epilogue, width - 1>(row, count, weights, walk, panel, epilogue);
      return;
    }
  }
  constexpr int rows = Isa::tile_rows(width);
  int32_t first = 0;
  for (; first + rows <= count; first += rows) {
    gemm_tile<Isa, Epilogue, rows, width>(row + first, weights, walk, panel, epilogue);
  }
  if (first < count) {
    gemm_rows<Isa, Epilogue, rows, width>(row + first, count - first, weights, walk, panel, epilogue);
  }
}

}  // namespace pmt::host
