// A sensor's image before the network: rows of uint8 pixels, channels last. Filters change it in place.
#pragma once

#include <cstdint>

namespace pmt {

struct Frame {
  uint8_t* pixels;
  int32_t height, width, channels;

  int32_t row_bytes() const { return width * channels; }
  uint8_t* row(int32_t y) const { return pixels + static_cast<int64_t>(y) * row_bytes(); }
};

// A row and its two neighbors as they were before a filter wrote to them. Outside the frame its edge is repeated, so
// that `channels` bytes before and after each row may be read.
class NeighborRows {
 public:
  static int64_t bytes(const Frame& frame) { return 3 * static_cast<int64_t>(padded_bytes(frame)); }

  NeighborRows(const Frame& frame, uint8_t* memory) : frame_(frame) {
    for (int32_t i = 0; i < 3; ++i) rows_[i] = memory + i * padded_bytes(frame);
    load(0, rows_[1]);
    load(0, rows_[2]);
  }

  // Goes on to the next row, before that is written; the first call goes to the first row.
  void advance() {
    uint8_t* const oldest = rows_[0];
    rows_[0] = rows_[1];
    rows_[1] = rows_[2];
    rows_[2] = oldest;
    load(++loaded_ < frame_.height ? loaded_ : frame_.height - 1, oldest);
  }

  // The row above (0), itself (1), the row below (2).
  const uint8_t* operator[](int32_t which) const { return rows_[which] + frame_.channels; }

 private:
  static int32_t padded_bytes(const Frame& frame) { return frame.row_bytes() + 2 * frame.channels; }

  void load(int32_t y, uint8_t* to) const {
    const int32_t channels = frame_.channels, count = frame_.row_bytes();
    const uint8_t* from = frame_.row(y);
    for (int32_t c = 0; c < channels; ++c) to[c] = from[c];
    for (int32_t i = 0; i < count; ++i) to[channels + i] = from[i];
    for (int32_t c = 0; c < channels; ++c) to[channels + count + c] = from[count - channels + c];
  }

  Frame frame_;
  uint8_t* rows_[3];
  int32_t loaded_ = 0;
};

// Gives each value of a frame the one that value(above, at, below) makes of it and its neighbors in the rows.
template <typename Value>
void filter_neighbors(const Frame& frame, uint8_t* memory, const Value& value) {
  NeighborRows rows(frame, memory);
  for (int32_t y = 0; y < frame.height; ++y) {
    rows.advance();
    uint8_t* out = frame.row(y);
    for (int32_t i = 0; i < frame.row_bytes(); ++i) out[i] = value(rows[0] + i, rows[1] + i, rows[2] + i);
  }
}

}  // namespace pmt
