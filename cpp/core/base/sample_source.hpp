// Where samples come from: memory on a host, a card on a device.
#pragma once

#include <cstdint>

namespace pmt {

// `read` fills the network's int8 input; workers call it at once.
struct SampleSource {
  void* context;
  bool (*read)(void* context, int32_t index, int8_t* image, int32_t* label);
  const float* targets = nullptr;  // [sample][class], which stand in for labels; a host's
  // A device's in their place: a compact plan has memory for those of one sample, [class].
  bool (*read_targets)(void* context, int32_t index, float* targets) = nullptr;
};

}  // namespace pmt
