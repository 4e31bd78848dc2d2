// A model in flash, and how it is opened.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/image/model.hpp"

namespace pmt::firmware {

struct ModelImage {
  const uint8_t* bytes;
  size_t count;
  uint32_t crc32;  // in the header of the image that was exported
};

// A program of two exports may have been linked with one image for both: that is told before the image is judged.
inline Status open_model(const ModelImage& image, Model* model) {
  if (image.bytes != nullptr && image.count >= sizeof(ImageHeader)) {
    uint32_t crc = 0;
    __builtin_memcpy(&crc, image.bytes + offsetof(ImageHeader, crc32), sizeof crc);
    if (crc != image.crc32) return {Code::image_other};
  }
  return model->open(image.bytes, image.count);
}

}  // namespace pmt::firmware
