// Weights of the packed product. For every panel of channels, for every group of taps: the group's
// weights of one channel after another. A run of taps that ends inside a group is filled up with
// zeros. Behind all panels stand the compensations, one int32 a channel.
#pragma once

namespace pmt::host {

struct GemmShape {
  int32_t channels;
  int32_t segments;      // runs of taps: kernel rows, or one
  int32_t segment_taps;  // of a run

  int32_t taps() const { return segments * segment_taps; }
};

template <typename Isa>
struct GemmPacking {
  static constexpr int32_t width = Isa::lanes * Isa::columns;  // of a panel
  static constexpr int32_t block = 16;                         // taps packed at once

  static GemmShape shape_of(const OpShape& shape) {
    const Shape& in = shape.in;
    const Window& w = shape.window;
    if (covers_input(shape)) return {shape.out.channels, 1, in.height * in.width * in.channels};
    return {shape.out.channels, w.kernel_h, w.kernel_w * in.channels};
  }
  // One output position that sees the whole input.
  static bool covers_input(const OpShape& shape) {
    if (shape.kind == OpKind::fully_connected) return true;
    const Window& w = shape.window;
    const bool whole = w.kernel_h == shape.in.height && w.kernel_w == shape.in.width;
    return whole && w.pad_top == 0 && w.pad_left == 0 && shape.out.height == 1 && shape.out.width == 1;
  }
  static bool is_pointwise(const OpShape& shape) {
    const Window& w = shape.window;
    return w.kernel_h == 1 && w.kernel_w == 1 && w.stride_h == 1 && w.stride_w == 1;
  }
  static int32_t groups(const GemmShape& shape) { return (shape.segment_taps + Isa::group - 1) / Isa::group; }
  // Channels as packed: whole vectors. The last panel may have fewer of them.
  static int32_t padded_channels(const GemmShape& shape) {
    return (shape.channels + Isa::lanes - 1) / Isa::lanes * Isa::lanes;
  }
  static int64_t channel_weights(const GemmShape& shape) {
    return static_cast<int64_t>(shape.segments) * groups(shape) * Isa::group;
  }
  static int64_t weights(const GemmShape& shape) { return padded_channels(shape) * channel_weights(shape); }
  static int64_t bytes(const OpShape& op) {
    const GemmShape shape = shape_of(op);
    const auto weight = static_cast<int64_t>(sizeof(typename Isa::Weight));
    const int64_t compensation = Isa::compensates ? static_cast<int64_t>(sizeof(int32_t)) * padded_channels(shape) : 0;
    return weights(shape) * weight + compensation;
  }
  static int32_t* compensations(const GemmShape& shape, void* packed) {
    return reinterpret_cast<int32_t*>(static_cast<typename Isa::Weight*>(packed) + weights(shape));
  }
  static const int32_t* compensations(const GemmShape& shape, const void* packed) {
    return reinterpret_cast<const int32_t*>(static_cast<const typename Isa::Weight*>(packed) + weights(shape));
  }

  static void pack(const PackArgs& args) {
    const GemmShape shape = shape_of(args.shape);
    auto* packed = static_cast<typename Isa::Weight*>(args.packed);
    for (int32_t first = 0; first < padded_channels(shape); first += width) {
      const int32_t left = padded_channels(shape) - first;
      const int32_t channels = left < width ? left : width;
      int32_t sums[width] = {};
      for (int32_t segment = 0; segment < shape.segments; ++segment) {
        for (int32_t tap = 0; tap < groups(shape) * Isa::group; tap += block) {
          alignas(64) int8_t values[width][block];
          gather(args, shape, {first, channels, segment, tap}, values);
          if (Isa::compensates) add_sums(values, channels, sums);
          const int32_t rest = groups(shape) * Isa::group - tap;
          packed += store(values, channels, rest < block ? rest : block, packed);
        }
      }
      if (!Isa::compensates) continue;
      int32_t* to = compensations(shape, args.packed) + first;
      for (int32_t c = 0; c < channels; ++c) to[c] = -Isa::compensation_offset(args.input_zero) * sums[c];
    }
  }

 private:
  struct Place {
    int32_t first, channels;
    int32_t segment, tap;
  };

  // The (perturbed) weights of a panel's channels at `block` taps, 0 where there are none.
  static void gather(const PackArgs& args, const GemmShape& shape, const Place& place, int8_t (&values)[width][block]) {
    const int32_t left = shape.segment_taps - place.tap;
    const int32_t there = left < block ? left : block;
    for (int32_t c = 0; c < place.channels; ++c) {
      if (place.first + c >= shape.channels) {
        __builtin_memset(values[c], 0, block);
        continue;
      }
      const int64_t at =
          static_cast<int64_t>(place.first + c) * shape.taps() + place.segment * shape.segment_taps + place.tap;
      const int8_t* weights = args.weights + at;
      const int8_t* signs = args.signs != nullptr ? args.signs + at : nullptr;
      if (there == block) {
        Isa::perturb16(weights, signs, args.mu, values[c]);
        continue;
      }
      int8_t some_weights[block] = {}, some_signs[block] = {};
      __builtin_memcpy(some_weights, weights, static_cast<size_t>(there));
      if (signs != nullptr) __builtin_memcpy(some_signs, signs, static_cast<size_t>(there));
      Isa::perturb16(some_weights, signs != nullptr ? some_signs : nullptr, args.mu, values[c]);
    }
  }

  static void add_sums(const int8_t (&values)[width][block], int32_t channels, int32_t (&sums)[width]) {
    for (int32_t c = 0; c < channels; ++c) {
      for (int32_t k = 0; k < block; ++k) sums[c] += values[c][k];
    }
  }

  // Returns how many weights it wrote.
  static int32_t store(const int8_t (&values)[width][block], int32_t channels, int32_t taps, typename Isa::Weight* to) {
    if (taps == block && channels == width) {
      Isa::transpose_block(values, to);
      return block * width;
    }
    for (int32_t group = 0; group < taps; group += Isa::group) {
      for (int32_t c = 0; c < channels; ++c) {
        for (int32_t k = 0; k < Isa::group; ++k) *to++ = values[c][group + k];
      }
    }
    return taps * channels;
  }
};

}  // namespace pmt::host
