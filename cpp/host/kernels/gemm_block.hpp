// Blocks of output positions whose input is converted once, and small enough to stay in the
// first-level cache while all panels of weights pass.
#pragma once

#include "host/kernels/gemm_shape.hpp"

namespace pmt::host {

// Consecutive output rows of one image, or several whole images.
struct GemmBlock {
  int32_t first_image, images;
  int32_t first_row, rows;
};

// Sizes of the padded input under a block, in activations.
class GemmBlocks {
 public:
  static constexpr int32_t most_positions = 240;
  static constexpr int32_t wanted_activations = 8192;

  // A block of whole tiles, of `tile_rows` positions, leaves no smaller one behind.
  GemmBlocks(const GemmShape& shape, const Window& window, int32_t tile_rows) : shape_(shape), window_(window) {
    pitch_ = ((shape.out.width - 1) * window.stride_w + shape.kernel_w) * shape.in.channels;
    const int32_t room = band_activations(shape);
    const int32_t fitting_rows = (room / pitch_ - shape.kernel_h) / window.stride_h + 1;
    const int32_t rows = clamp(fitting_rows, 1, clamp(most_positions / shape.out.width, 1, shape.out.height));
    const bool in_tiles = shape.out.width == 1 && rows < shape.out.height && rows >= tile_rows;
    rows_ = even(shape.out.height, in_tiles ? rows - rows % tile_rows : rows);
    if (in_tiles) rows_ = (rows_ + tile_rows - 1) / tile_rows * tile_rows;
    const int32_t positions = rows_ * shape.out.width;
    const int32_t images =
        clamp(room / (input_rows(rows_) * pitch_), 1, clamp(most_positions / positions, 1, most_positions));
    images_ = rows_ < shape.out.height ? 1 : in_whole_tiles(images, positions, tile_rows);
  }

  // Enough for one output row whatever the strides, which are unknown when scratch is measured: a
  // padding is less than its kernel.
  static int32_t band_activations(const GemmShape& shape) {
    const int32_t widest = (shape.in.width + 2 * (shape.kernel_w - 1)) * shape.in.channels;
    const int32_t least = widest * shape.kernel_h;
    return least > wanted_activations ? least : wanted_activations;
  }
  static int32_t positions(const GemmShape& shape) {
    return shape.out.width > most_positions ? shape.out.width : most_positions;
  }

  // Extent of the largest block.
  int32_t rows() const { return rows_; }
  int32_t images() const { return images_; }

  int32_t pitch() const { return pitch_; }
  int32_t input_rows(int32_t rows) const { return (rows - 1) * window_.stride_h + shape_.kernel_h; }

  // Calls use(GemmBlock) for every block of a batch.
  template <typename Use>
  void for_each(int32_t images, const Use& use) const {
    for (int32_t image = 0; image < images; image += images_) {
      const int32_t count = images - image < images_ ? images - image : images_;
      for (int32_t row = 0; row < shape_.out.height; row += rows_) {
        const int32_t rows = shape_.out.height - row < rows_ ? shape_.out.height - row : rows_;
        use(GemmBlock{image, count, row, rows});
      }
    }
  }

 private:
  // At most `most` images of `positions`, fewer where those fill the tiles.
  static int32_t in_whole_tiles(int32_t most, int32_t positions, int32_t tile_rows) {
    const int32_t of_image = positions % tile_rows;
    int32_t left = most * of_image % tile_rows;
    for (int32_t images = most; images > 0; --images) {
      if (left == 0) return images;
      left += left < of_image ? tile_rows - of_image : -of_image;
    }
    return most;
  }

  // `count` in parts of at most `most`, as even as can be.
  static int32_t even(int32_t count, int32_t most) {
    const int32_t parts = (count + most - 1) / most;
    return (count + parts - 1) / parts;
  }

  GemmShape shape_;
  Window window_;
  int32_t pitch_, rows_, images_;
};

}  // namespace pmt::host
