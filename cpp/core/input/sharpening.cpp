#include "core/base/arithmetic.hpp"
#include "core/input/filters.hpp"

namespace pmt {

void sharpening(const Frame& frame, int32_t amount, uint8_t* scratch) {
  const int32_t step = frame.channels;
  filter_neighbors(frame, scratch, [=](const uint8_t* above, const uint8_t* at, const uint8_t* below) {
    const int32_t beside = *above + *below + at[-step] + at[step];
    const int32_t across = above[-step] + above[step] + below[-step] + below[step];
    const int32_t detail = 12 * *at - 2 * beside - across;  // sixteenths
    return static_cast<uint8_t>(clamp(*at + ((amount * detail + 128) >> 8), 0, 255));
  });
}

}  // namespace pmt
