// The trained network as a complete .pmt image: the model in flash, with the layers under training
// from memory and a new checksum. The host loads it like any other model.
#pragma once

#include "core/layer.hpp"

namespace pmt::firmware {

struct CheckpointSource {
  const Model* model;
  const uint8_t* image;  // the model in flash
  const Layer* layers;
  int32_t layer_count;
};

// The checksum that the checkpoint's header will hold.
uint32_t checkpoint_crc32(const CheckpointSource& source);

// Writes aside and renames, so that `name` is always a complete image; false when storage fails.
bool write_checkpoint(const CheckpointSource& source, const char* name, const char* name_aside);

}  // namespace pmt::firmware
