// A convolution or fully connected layer as a matrix product: a row is an output position, a column
// an output channel. The taps of a row are `segments` runs of input values that lie one after
// another in a padded input row, so that no patch is ever gathered.
#pragma once

#include "core/base/arithmetic.hpp"
#include "core/kernels/table.hpp"

namespace pmt::host {

struct GemmShape {
  Shape in, out;
  int32_t kernel_h, kernel_w;
  // Positions that share a row, of which each has its part of the taps and of the columns: the weights of
  // its columns are 0 for the taps of others.
  int32_t row_positions = 1;

  int32_t taps() const { return kernel_h * kernel_w * in.channels; }
  // The padded rows under a single column of outputs have no gaps.
  int32_t segments() const { return out.width == 1 ? 1 : kernel_h; }
  int32_t segment_taps() const { return taps() / segments(); }
  // Every input value is in one row.
  bool is_plain() const { return kernel_h == 1 && kernel_w == 1 && in.height == out.height && in.width == out.width; }
};

inline GemmShape dense_shape(const Shape& in, const Shape& out) {
  return {{1, 1, in.height * in.width * in.channels}, {1, 1, out.channels}, 1, 1, 1};
}

// Every position of a pointwise convolution is an input row of its own.
inline GemmShape conv_shape(const Shape& in, const Shape& out, int32_t kernel_h, int32_t kernel_w) {
  const GemmShape shape = {in, out, kernel_h, kernel_w, 1};
  if (!shape.is_plain()) return shape;
  const int32_t positions = in.height * in.width;
  return {{positions, 1, in.channels}, {positions, 1, out.channels}, 1, 1, 1};
}

constexpr int32_t taps_step = 16;  // that are packed at once

// Two positions a row where one would leave half of a vector idle; of a shape that conv_shape() made.
template <typename Isa>
GemmShape in_pairs(const GemmShape& shape) {
  const Shape &in = shape.in, &out = shape.out;
  const bool pays = shape.is_plain() && 2 * out.channels <= Isa::lanes;
  if (!pays || in.height % 2 > 0 || in.channels % taps_step > 0) return shape;
  return {{in.height / 2, 1, 2 * in.channels}, {out.height / 2, 1, 2 * out.channels}, 1, 1, 2};
}

template <typename Isa>
GemmShape gemm_shape(const OpShape& shape) {
  if (shape.kind == OpKind::fully_connected) return dense_shape(shape.in, shape.out);
  return in_pairs<Isa>(conv_shape(shape.in, shape.out, shape.window.kernel_h, shape.window.kernel_w));
}

// Packed weights: panels of up to `panel_width()` vectors of channels; in a panel, for every group of taps,
// its vectors one after another. Channels and taps that fill up vectors and groups have weight 0.
class GemmLayout {
 public:
  template <typename Isa>
  static GemmLayout of(const GemmShape& shape) {
    GemmLayout layout;
    layout.lanes_ = Isa::lanes;
    layout.groups_ = (shape.segment_taps() + Isa::group - 1) / Isa::group;
    layout.group_bytes_ = Isa::lanes * Isa::group * static_cast<int32_t>(sizeof(typename Isa::Weight));
    layout.start_bytes_ = Isa::compensates ? Isa::lanes * 4 : 0;
    layout.vector_bytes_ =
        layout.start_bytes_ + static_cast<int64_t>(shape.segments()) * layout.groups_ * layout.group_bytes_;
    layout.channels_ = shape.out.channels;
    layout.vectors_ = (shape.out.channels + Isa::lanes - 1) / Isa::lanes;
    const int32_t width = Isa::panel_width(shape.out.height * shape.out.width);
    layout.panels_ = (layout.vectors_ + width - 1) / width;
    return layout;
  }

  struct Panel {
    int32_t first_channel, channels;
    int32_t width;   // vectors
    int64_t offset;  // bytes
  };
  // Widths differ by one at most, the wider first.
  Panel panel(int32_t index) const {
    const int32_t narrow = vectors_ / panels_, wider = vectors_ % panels_;
    const int32_t width = narrow + (index < wider ? 1 : 0);
    const int32_t first = index * narrow + (index < wider ? index : wider);
    const int32_t end = clamp((first + width) * lanes_, 0, channels_);
    return {first * lanes_, end - first * lanes_, width, first * vector_bytes_};
  }

  int64_t bytes() const { return vectors_ * vector_bytes_; }
  int32_t panels() const { return panels_; }
  int32_t groups() const { return groups_; }            // of a segment
  int32_t group_bytes() const { return group_bytes_; }  // of one vector
  // One vector's start values of its sums, before the groups.
  int32_t start_bytes() const { return start_bytes_; }

 private:
  int32_t lanes_, channels_, vectors_, panels_, groups_, group_bytes_, start_bytes_;
  int64_t vector_bytes_;
};

}  // namespace pmt::host
