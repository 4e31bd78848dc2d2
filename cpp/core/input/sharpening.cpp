#include "core/base/arithmetic.hpp"
#include "core/input/filters.hpp"

namespace pmt {

int64_t sharpening_bytes(const Frame& frame) { return NeighborRows::bytes(frame); }

void sharpening(const Frame& frame, int32_t amount, uint8_t* scratch) {
  NeighborRows rows(frame, scratch);
  const int32_t step = frame.channels;
  for (int32_t y = 0; y < frame.height; ++y) {
    rows.advance();
    uint8_t* out = frame.row(y);
    const uint8_t *above = rows[0], *row = rows[1], *below = rows[2];
    for (int32_t i = 0; i < frame.row_bytes(); ++i) {
      const int32_t beside = above[i] + below[i] + row[i - step] + row[i + step];
      const int32_t across = above[i - step] + above[i + step] + below[i - step] + below[i + step];
      const int32_t detail = 12 * row[i] - 2 * beside - across;  // sixteenths
      out[i] = static_cast<uint8_t>(clamp(row[i] + ((amount * detail + 128) >> 8), 0, 255));
    }
  }
}

}  // namespace pmt
