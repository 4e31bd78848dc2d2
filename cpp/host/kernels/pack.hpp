// Weights of convolutions and fully connected layers into the layout of GemmLayout, perturbed on
// the way: every query of weight perturbation does this, so it costs less than a product.
#pragma once

#include <cstring>

#include "host/kernels/gemm_shape.hpp"

namespace pmt::host {

template <typename Isa>
class GemmPacking {
 public:
  static int64_t bytes(const OpShape& op) { return GemmLayout::of<Isa>(gemm_shape<Isa>(op)).bytes(); }
  static void pack(const PackArgs& args) { GemmPacking(args).run(); }

 private:
  using Taps = typename Isa::Taps;

  explicit GemmPacking(const PackArgs& args)
      : args_(args),
        shape_(gemm_shape<Isa>(args.shape)),
        layout_(GemmLayout::of<Isa>(shape_)),
        taps_(shape_.taps() / shape_.row_positions),
        channels_(shape_.out.channels / shape_.row_positions),
        count_(static_cast<int64_t>(channels_) * taps_) {}

  void run() const {
    for (int32_t p = 0; p < layout_.panels(); ++p) {
      const GemmLayout::Panel panel = layout_.panel(p);
      auto* packed = static_cast<uint8_t*>(args_.packed) + panel.offset;
      pack_panel(panel, packed + panel.width * layout_.start_bytes());
      if constexpr (Isa::compensates) write_starts(panel, packed);
    }
  }

  void pack_panel(const GemmLayout::Panel& panel, uint8_t* packed) const {
    const int32_t stride = panel.width * layout_.group_bytes();  // from a group to the next
    const int32_t channel_bytes = layout_.group_bytes() / Isa::lanes;
    for (int32_t s = 0; s < shape_.segments(); ++s) {
      for (int32_t c = 0; c < panel.width * Isa::lanes; c += Isa::pack_channels) {
        pack_channels(panel, s, c, stride, packed + c * channel_bytes);
      }
      packed += static_cast<int64_t>(layout_.groups()) * stride;
    }
  }

  void pack_channels(const GemmLayout::Panel& panel, int32_t segment, int32_t channel, int32_t stride,
                     uint8_t* packed) const {
    const int32_t taps = shape_.segment_taps();
    for (int32_t k = 0; k < taps; k += taps_step) {
      Taps weights[Isa::pack_channels];
      for (int32_t c = 0; c < Isa::pack_channels; ++c) {
        weights[c] = channel + c < panel.channels ? taps_of(panel.first_channel + channel + c, segment * taps + k,
                                                            taps - k < taps_step ? taps - k : taps_step)
                                                  : Isa::no_taps();
      }
      const int32_t groups = layout_.groups() - k / Isa::group;
      Isa::store_groups(weights, groups < taps_step / Isa::group ? groups : taps_step / Isa::group, stride,
                        packed + static_cast<int64_t>(k / Isa::group) * stride);
    }
  }

  // `taps` weights of a column from tap `k` on.
  Taps taps_of(int32_t column, int32_t k, int32_t taps) const {
    if (shape_.row_positions > 1) {
      const int32_t position = column / channels_;
      if (k / taps_ != position) return Isa::no_taps();
      column -= position * channels_;
      k -= position * taps_;
    }
    return perturbed(static_cast<int64_t>(column) * taps_ + k, taps);
  }

  // `taps` weights from `index` on, zeros after them.
  Taps perturbed(int64_t index, int32_t taps) const {
    const Taps weights = load(args_.weights, index, taps);
    if (args_.signs == nullptr) return taps < taps_step ? Isa::keep_taps(weights, taps) : weights;
    const Taps sums = Isa::perturb_taps(weights, load(args_.signs, index, taps), args_.mu);
    return taps < taps_step ? Isa::keep_taps(sums, taps) : sums;
  }

  // Reads 16 values where the layer has them.
  Taps load(const int8_t* values, int64_t index, int32_t taps) const {
    if (index + taps_step <= count_) return Isa::load_taps(values + index);
    int8_t copy[taps_step] = {};
    std::memcpy(copy, values + index, static_cast<size_t>(taps));
    return Isa::load_taps(copy);
  }

  // The sums start with -(zero point as stored) * sum(weights), which wraps as the sums do.
  void write_starts(const GemmLayout::Panel& panel, uint8_t* packed) const {
    constexpr int32_t ones[1] = {0x01010101};
    const int32_t vector_bytes = layout_.group_bytes();
    const uint8_t* groups = packed + panel.width * layout_.start_bytes();
    const int32_t count = shape_.segments() * layout_.groups();
    for (int32_t v = 0; v < panel.width; ++v) {
      typename Isa::Int32 sums = Isa::zero();
      for (int32_t g = 0; g < count; ++g) {
        sums = Isa::dot(sums, Isa::broadcast(ones),
                        Isa::load(groups + (static_cast<int64_t>(g) * panel.width + v) * vector_bytes));
      }
      const int32_t zero_point = Isa::stored(args_.input_zero, args_.input_zero);
      Isa::store(packed + v * layout_.start_bytes(), Isa::multiply(sums, -zero_point));
    }
  }

  const PackArgs& args_;
  const GemmShape shape_;
  const GemmLayout layout_;
  const int32_t taps_, channels_;  // of a position
  const int64_t count_;
};

}  // namespace pmt::host
