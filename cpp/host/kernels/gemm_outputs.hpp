// From the sums of a tile to outputs: the epilogues of gemm_tile.hpp.
#pragma once

#include <cstring>

#include "host/kernels/gemm_shape.hpp"
#include "host/kernels/unrolled.hpp"

namespace pmt::host {

// How the vectors of a panel lie in the output.
enum class Stores {
  parts,  // the last one has lanes without a channel
  whole,  // side by side within a position
  dense,  // positions are side by side, too: the panel has all of their channels. Of EvenRows only
};

// Requantized sums. Modest (requantize_bounds.hpp): they start with the bias.
template <typename Isa, bool modest, Stores stores>
struct RequantizeSums {
  using Int32 = typename Isa::Int32;
  using Bytes = typename Isa::Bytes;
  using Output = int8_t;
  typename Isa::Range range;
  const int32_t* bias;
  const float* scales;
  Output* output;  // of the block

  static constexpr bool is_dense = stores == Stores::dense;
  // Its constants would take registers from a tile this wide.
  template <int width>
  static constexpr bool is_apart = width > 2 && !modest;

  Int32 start(int32_t channel) const { return modest ? Isa::load(bias + channel) : Isa::zero(); }

  // Four vectors at a time.
  template <int rows, int width, typename Rows>
  void write(const Rows& tile, const GemmLayout::Panel& panel, const Int32 (&sums)[rows * width]) const {
    constexpr int total = rows * width;
    Output* const place = output + panel.first_channel;
    PMT_UNROLL
    for (int first = 0; first < total; first += 4) {
      const int count = total - first < 4 ? total - first : 4;
      Int32 rounded[4];
      PMT_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int index = i < count ? first + i : total - 1;
        rounded[i] = round(sums[index], panel.first_channel + index % width * Isa::lanes);
      }
      const Bytes outputs = Isa::template narrow<!modest>(rounded, range);
      if constexpr (is_dense) {
        store_dense(place + tile.output(0) + first * Isa::lanes, outputs, count);
      } else if constexpr (stores == Stores::whole) {
        store_whole<width>(place, tile, outputs, first, count);
      } else if constexpr (Isa::stores_parts) {
        store_parts<width>(place, tile, panel.channels, outputs, first, count);
      } else {
        copy_parts<width>(place, tile, panel.channels, outputs, first, count);
      }
    }
  }

 private:
  Int32 round(Int32 sums, int32_t channel) const {
    const auto factors = Isa::load_floats(scales + channel);
    if constexpr (modest) return Isa::round_modest(sums, factors);
    return Isa::round(Isa::real(sums, Isa::to_float(Isa::load(bias + channel)), factors), range);
  }

  static void store_dense(Output* to, const Bytes& outputs, int count) {
    if (count == 4) {
      Isa::store_outputs(to, outputs, 0, 4);
      return;
    }
    if (count >= 2) Isa::store_outputs(to, outputs, 0, 2);
    if (count % 2 == 1) Isa::store_outputs(to + (count - 1) * Isa::lanes, outputs, count - 1, 1);
  }

  template <int width, typename Rows>
  static void store_whole(Output* place, const Rows& tile, const Bytes& outputs, int first, int count) {
    constexpr int step = width % 4 == 0 ? 4 : (width % 2 == 0 ? 2 : 1);
    PMT_UNROLL
    for (int i = 0; i < 4; i += step) {
      if (i >= count) break;
      const int column = (first + i) % width * Isa::lanes;
      Isa::store_outputs(place + tile.output((first + i) / width) + column, outputs, i, step);
    }
  }

  template <int width, typename Rows>
  static void store_parts(Output* place, const Rows& tile, int32_t channels, const Bytes& outputs, int first,
                          int count) {
    PMT_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i >= count) break;
      const int column = (first + i) % width * Isa::lanes;
      Isa::store_part(place + tile.output((first + i) / width) + column, outputs, i, channels - column);
    }
  }

  template <int width, typename Rows>
  __attribute__((noinline)) static void copy_parts(Output* place, const Rows& tile, int32_t panel_channels,
                                                   const Bytes& outputs, int first, int count) {
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

  static constexpr bool is_dense = false;
  template <int width>
  static constexpr bool is_apart = false;

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

}  // namespace pmt::host
