// The trained network's .pmt image without its bytes: the model in flash with the layers under
// training from memory. The host puts it together from the card and compares the checksum.
#pragma once

#include "core/zo/layer.hpp"

namespace pmt::firmware {

struct TrainedImage {
  const Model* model;
  const uint8_t* image;  // the model in flash
  const Layer* layers;
  int32_t layer_count;
};

// The checksum in the header of that image.
uint32_t trained_crc32(const TrainedImage& source);

}  // namespace pmt::firmware
