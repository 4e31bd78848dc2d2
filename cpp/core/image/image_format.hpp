// The .pmt image: one flat little-endian block that is the file on disk, the array in flash and the
// checkpoint on the SD card. Every record is made of 4-byte fields, so that an aligned image can be
// read in place. Offsets count from the start of the image unless said otherwise.
#pragma once

#include <cstdint>

#include "core/base/op_record.hpp"
#include "core/base/words.hpp"

namespace pmt {

constexpr uint8_t image_magic[4] = {'P', 'M', 'T', 'I'};
constexpr uint32_t image_version = 1;
constexpr uint32_t image_version_with_stage = 2;  // of an image that holds an input stage
constexpr uint32_t image_alignment = 16;          // of every section

struct Section {
  uint32_t offset;
  uint32_t count;  // records, or bytes for names, metadata and data
};

struct ImageHeader {
  uint8_t magic[4];
  uint32_t version;
  uint32_t image_bytes;
  uint32_t crc32;  // IEEE CRC-32 of bytes 16 .. image_bytes
  Section tensors;
  Section ops;
  Section blocks;
  Section block_layers;  // uint32 op indices, ascending inside a block
  Section names;         // NUL-terminated UTF-8
  Section metadata;      // UTF-8 JSON, not read by the core
  Section data;          // weights, biases, scales
  uint32_t input_tensor;
  uint32_t output_tensor;
  float input_mean[4];   // per channel, in units of a 0..255 pixel
  float input_std[4];    // real input = (pixel - mean) / std
  Section stage;         // bytes, none without an input stage: a StageRecord and what follows it
  uint32_t reserved[2];  // zero
};
static_assert(sizeof(ImageHeader) == 128, "the header is part of the file format");

struct BlockRecord {
  uint32_t name;
  uint32_t first;  // index into block_layers
  uint32_t count;
};
static_assert(sizeof(BlockRecord) == 12, "part of the file format");

// The stage before the network turns a sensor's frame of uint8 pixels into the input: filters one after another, then
// resampling to the input's size. Its section is this record, the filters, and for each channel the input's int8 value
// of every pixel.
struct StageRecord {
  int32_t height, width;  // of the frame, which has the input's channels
  uint32_t filters;
  uint32_t reserved;  // zero
};
static_assert(sizeof(StageRecord) == 16, "part of the file format");

PMT_WORDS(FilterKind, none, switching_median, dct_shrinkage, sharpening, standardization, tone_curve)

// The growth of a noise's standard deviation with the mean of a block: as of read noise, photon noise, speckle.
PMT_WORDS(NoiseModel, constant, square_root, proportional)

struct FilterRecord {
  FilterKind kind;  // not none
  int32_t strength;
  NoiseModel noise;   // that a dct_shrinkage expects; else constant
  uint32_t reserved;  // zero
};
static_assert(sizeof(FilterRecord) == 16, "part of the file format");

constexpr int32_t shrinkage_block = 4;  // rows and columns of a frame, at least
constexpr uint32_t most_filters = 8;
constexpr int32_t most_stage_channels = 4;
constexpr int32_t pixel_values = 256;

}  // namespace pmt
