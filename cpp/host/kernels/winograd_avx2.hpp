// 3x3 convolutions of stride 1 by Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", CVPR 2016): a square of 2 x 2 outputs takes 16 products for each input channel in
// place of 36.
//
// The integers are exact. A transformed input is a sum of four inputs less their zero point, at most 1020. Transformed
// weights are doubled in both directions, at most 9 * 128, and so every sum is four times its output's. Sums may wrap
// on the way, but four times a sum of up to 1024 channels fits int32.
#pragma once

#include "host/kernels/gemm_outputs.hpp"
#include "host/kernels/gemm_tile.hpp"
#include "host/kernels/requantize_bounds.hpp"

namespace pmt::host {
namespace {

class WinogradAvx2 {
 public:
  static bool fits(const OpShape& shape) {
    const Window& window = shape.window;
    const bool moves_by_one =
        window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 1 && window.stride_w == 1;
    const bool in_squares = shape.out.height % 2 == 0 && shape.out.width % 2 == 0;
    return shape.kind == OpKind::conv2d && moves_by_one && in_squares && shape.in.channels % step == 0 &&
           shape.in.channels <= 1024 && shape.out.channels >= step;
  }

  static int64_t packed_bytes(const OpShape& shape) { return places * layout_of(shape.in, shape.out).bytes(); }

  // Transformed inputs of a block of squares, and the sums of a panel.
  static int32_t scratch_bytes(const OpShape& shape) {
    const int32_t squares = squares_at_once(shape.in.channels);
    return places * squares * (shape.in.channels * 2 + most_lanes * 4);
  }

  static void pack(const PackArgs& args) {
    const GemmLayout layout = layout_of(args.shape.in, args.shape.out);
    for (int32_t p = 0; p < layout.panels(); ++p) {
      const GemmLayout::Panel panel = layout.panel(p);
      for (int32_t lane = 0; lane < panel.width * Isa::lanes; ++lane) {
        for (int32_t c = 0; c < args.shape.in.channels; c += step) pack_filters(args, layout, panel, lane, c);
      }
    }
  }

  static void run(const LinearArgs& args) { WinogradAvx2(args).run(); }

 private:
  using Isa = Avx2;
  using Plain = RequantizeSums<Isa, false, Stores::parts>;

  static constexpr int32_t step = 16;    // channels of a vector
  static constexpr int32_t places = 16;  // of a transformed square
  static constexpr int32_t most_lanes = 2 * Isa::lanes;

  // As many as keep their transformed inputs in the second-level cache, in whole tiles of a product.
  static int32_t squares_at_once(int32_t channels) { return clamp(8192 / channels, 6, 48) / 6 * 6; }

  // One place's product: a row is a square.
  static GemmLayout layout_of(const Shape& in, const Shape& out) {
    return GemmLayout::of<Isa>({{2, 1, in.channels}, {2, 1, out.channels}, 1, 1});
  }

  // a0 - a2, a1 + a2, a2 - a1, a1 - a3
  static void transform_input(__m256i& a0, __m256i& a1, __m256i& a2, __m256i& a3) {
    const __m256i second = a1;
    a0 = _mm256_sub_epi16(a0, a2);
    a1 = _mm256_add_epi16(second, a2);
    a2 = _mm256_sub_epi16(a2, second);
    a3 = _mm256_sub_epi16(second, a3);
  }

  // 2 w0, w0 + w1 + w2, w0 - w1 + w2, 2 w2: Lavin and Gray's, doubled.
  static void transform_weights(const __m256i& w0, const __m256i& w1, const __m256i& w2, __m256i (&to)[4]) {
    const __m256i outer = _mm256_add_epi16(w0, w2);
    to[0] = _mm256_add_epi16(w0, w0);
    to[1] = _mm256_add_epi16(outer, w1);
    to[2] = _mm256_sub_epi16(outer, w1);
    to[3] = _mm256_add_epi16(w2, w2);
  }

  // The filters of an output channel, a lane of the panel, and of 16 input channels.
  static void pack_filters(const PackArgs& args, const GemmLayout& layout, const GemmLayout::Panel& panel, int32_t lane,
                           int32_t channel) {
    __m256i weights[3][3], rows[3][4], squares[4][4];
    for (int32_t k = 0; k < 9; ++k) weights[k / 3][k % 3] = filter(args, panel, lane, k, channel);
    for (int32_t y = 0; y < 3; ++y) transform_weights(weights[y][0], weights[y][1], weights[y][2], rows[y]);
    for (int32_t x = 0; x < 4; ++x) {
      __m256i column[4];
      transform_weights(rows[0][x], rows[1][x], rows[2][x], column);
      for (int32_t y = 0; y < 4; ++y) squares[y][x] = column[y];
    }
    const int32_t group_bytes = panel.width * layout.group_bytes();
    auto* packed = static_cast<uint8_t*>(args.packed) + panel.offset + channel / Isa::group * group_bytes + lane * 4;
    for (int32_t place = 0; place < places; ++place, packed += layout.bytes()) {
      int32_t pairs[step / Isa::group];
      Isa::store(pairs, squares[place / 4][place % 4]);
      for (int32_t g = 0; g < step / Isa::group; ++g) std::memcpy(packed + g * group_bytes, pairs + g, 4);
    }
  }

  static __m256i filter(const PackArgs& args, const GemmLayout::Panel& panel, int32_t lane, int32_t tap,
                        int32_t channel) {
    if (lane >= panel.channels) return Isa::zero();
    const int64_t index =
        (static_cast<int64_t>(panel.first_channel + lane) * 9 + tap) * args.shape.in.channels + channel;
    const Isa::Taps weights = Isa::load_taps(args.weights + index);
    if (args.signs == nullptr) return _mm256_cvtepi8_epi16(weights);
    return _mm256_cvtepi8_epi16(Isa::perturb_taps(weights, Isa::load_taps(args.signs + index), args.mu));
  }

  explicit WinogradAvx2(const LinearArgs& args)
      : args_(args),
        layout_(layout_of(args.in, args.out)),
        zero_points_(_mm256_set1_epi16(static_cast<int16_t>(args.input_zero))),
        most_(squares_at_once(args.in.channels)),
        inputs_(static_cast<int16_t*>(args.scratch)),
        sums_(reinterpret_cast<int32_t*>(inputs_ + places * most_ * args.in.channels)) {}

  struct Square {
    int32_t image, y, x;  // its first output
  };

  void run() const {
    int32_t left = args_.batch.images * (args_.out.height / 2) * (args_.out.width / 2);
    for (Square first = {0, 0, 0}; left > 0; left -= most_) {
      const int32_t count = left < most_ ? left : most_;
      Square at = first;
      for (int32_t i = 0; i < count; ++i, go_on(at)) transform(at, inputs_ + i * args_.in.channels);
      for (int32_t p = 0; p < layout_.panels(); ++p) multiply(first, count, layout_.panel(p));
      first = at;
    }
  }

  void go_on(Square& at) const {
    at.x += 2;
    if (at.x < args_.out.width) return;
    at.x = 0;
    at.y += 2;
    if (at.y < args_.out.height) return;
    at.y = 0;
    ++at.image;
  }

  void transform(const Square& at, int16_t* values) const {
    const int32_t y = at.y - args_.window.pad_top, x = at.x - args_.window.pad_left;
    const int8_t* image = args_.input + static_cast<int64_t>(at.image) * args_.batch.input_stride;
    const bool inside = y >= 0 && x >= 0 && y + 4 <= args_.in.height && x + 4 <= args_.in.width;
    inside ? transform<true>(image, y, x, values) : transform<false>(image, y, x, values);
  }

  template <bool inside>
  void transform(const int8_t* image, int32_t y, int32_t x, int16_t* values) const {
    const int32_t channels = args_.in.channels, row = args_.in.width * channels;
    const int8_t* corner = image + static_cast<int64_t>(y) * row + static_cast<int64_t>(x) * channels;
    for (int32_t c = 0; c < channels; c += step) {
      __m256i square[4][4];
      PMT_UNROLL
      for (int32_t k = 0; k < places; ++k) {
        const bool is_there = inside || is_in_image(y + k / 4, x + k % 4);
        square[k / 4][k % 4] = is_there ? input(corner + k / 4 * row + k % 4 * channels + c) : Isa::zero();
      }
      PMT_UNROLL
      for (int32_t i = 0; i < 4; ++i) transform_input(square[0][i], square[1][i], square[2][i], square[3][i]);
      PMT_UNROLL
      for (int32_t i = 0; i < 4; ++i) transform_input(square[i][0], square[i][1], square[i][2], square[i][3]);
      PMT_UNROLL
      for (int32_t k = 0; k < places; ++k) Isa::store(values + k * most_ * channels + c, square[k / 4][k % 4]);
    }
  }

  bool is_in_image(int32_t y, int32_t x) const { return y >= 0 && x >= 0 && y < args_.in.height && x < args_.in.width; }

  __m256i input(const int8_t* values) const {
    return _mm256_sub_epi16(_mm256_cvtepi8_epi16(Isa::load_taps(values)), zero_points_);
  }

  // Sums as they are, vectors of a square side by side.
  struct StoreSums {
    int32_t* sums;
    template <int width>
    static constexpr bool is_apart = false;
    static Isa::Int32 start(int32_t) { return Isa::zero(); }
    template <int rows, int width, typename Rows>
    void write(const Rows& tile, const GemmLayout::Panel&, const Isa::Int32 (&from)[rows * width]) const {
      PMT_UNROLL
      for (int i = 0; i < rows * width; ++i)
        Isa::store(sums + tile.output(i / width) + i % width * Isa::lanes, from[i]);
    }
  };

  void multiply(const Square& first, int32_t count, const GemmLayout::Panel& panel) const {
    const EvenRows rows = {{0, 0}, {args_.in.channels * 2, panel.width * Isa::lanes}};
    const auto* weights = static_cast<const uint8_t*>(args_.packed) + panel.offset;
    for (int32_t place = 0; place < places; ++place, weights += layout_.bytes()) {
      const auto* band = reinterpret_cast<const uint8_t*>(inputs_ + place * most_ * args_.in.channels);
      gemm_panel<Isa, StoreSums, EvenRows, 2>(rows, count, weights, {band, 1, layout_.groups(), 0}, panel,
                                              StoreSums{sums_ + place * most_ * most_lanes});
    }
    const Plain plain = {Isa::range(args_.output_zero, args_.clamp_min, args_.clamp_max), args_.bias, args_.scales,
                         args_.output};
    const bool modest = is_modest(args_, 9 * args_.in.channels, panel.first_channel, panel.channels);
    const bool whole = panel.channels == panel.width * Isa::lanes;
    if (modest && whole) {
      write_as<RequantizeSums<Isa, true, Stores::whole>>(plain, first, count, panel);
    } else if (whole) {
      write_as<RequantizeSums<Isa, false, Stores::whole>>(plain, first, count, panel);
    } else {
      write_as<Plain>(plain, first, count, panel);
    }
  }

  template <typename Epilogue>
  void write_as(const Plain& plain, const Square& first, int32_t count, const GemmLayout::Panel& panel) const {
    const Epilogue epilogue = {plain.range, plain.bias, plain.scales, plain.output};
    if (panel.width == 1) {
      write<1>(epilogue, first, count, panel);
    } else {
      write<2>(epilogue, first, count, panel);
    }
  }

  // Where the outputs of a square are.
  struct Outputs {
    int64_t first, right, down;
    int64_t output(int r) const { return first + r % 2 * right + r / 2 * down; }
  };

  template <int width, typename Epilogue>
  void write(const Epilogue& epilogue, Square at, int32_t count, const GemmLayout::Panel& panel) const {
    const int32_t channels = args_.out.channels, row = args_.out.width * channels;
    for (int32_t i = 0; i < count; ++i, go_on(at)) {
      Isa::Int32 sums[4 * width];
      PMT_UNROLL
      for (int v = 0; v < width; ++v) {
        const Isa::Int32 start = epilogue.start(panel.first_channel + v * Isa::lanes);
        transform_sums(sums_ + (i * width + v) * Isa::lanes, start, sums + v, width);
      }
      const int64_t place = static_cast<int64_t>(at.image) * args_.batch.output_stride + at.y * row + at.x * channels;
      epilogue.template write<4, width>(Outputs{place, channels, row}, panel, sums);
    }
  }

  // The sums of a square's four outputs, `apart` vectors apart.
  PMT_INLINE void transform_sums(const int32_t* from, Isa::Int32 start, Isa::Int32* sums, int apart) const {
    Isa::Int32 rows[2][4];
    PMT_UNROLL
    for (int x = 0; x < 4; ++x) {
      const auto place = [&](int y) { return Isa::load(from + (4 * y + x) * most_ * most_lanes); };
      outputs_of(place(0), place(1), place(2), place(3), rows[0][x], rows[1][x]);
    }
    PMT_UNROLL
    for (int y = 0; y < 2; ++y) {
      Isa::Int32 left, right;
      outputs_of(rows[y][0], rows[y][1], rows[y][2], rows[y][3], left, right);
      sums[2 * y * apart] = Isa::add(start, _mm256_srai_epi32(left, 2));
      sums[(2 * y + 1) * apart] = Isa::add(start, _mm256_srai_epi32(right, 2));
    }
  }

  static void outputs_of(Isa::Int32 m0, Isa::Int32 m1, Isa::Int32 m2, Isa::Int32 m3, Isa::Int32& first,
                         Isa::Int32& second) {
    first = Isa::add(Isa::add(m0, m1), m2);
    second = _mm256_sub_epi32(_mm256_sub_epi32(m1, m2), m3);
  }

  const LinearArgs& args_;
  const GemmLayout layout_;
  const __m256i zero_points_;
  const int32_t most_;  // squares of a block
  int16_t* inputs_;     // by place, square and channel
  int32_t* sums_;       // by place, square and lane
};

}  // namespace
}  // namespace pmt::host
