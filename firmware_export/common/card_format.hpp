// card.bin: what the host gives the board. Little-endian; every section has its own checksum.
#pragma once

#include <cstdint>

namespace pmt::firmware {

constexpr uint8_t card_magic[4] = {'P', 'M', 'T', 'D'};
constexpr uint32_t card_version = 2;

struct CardSection {
  uint32_t offset;  // from the start of the file, a multiple of 16
  uint32_t bytes;
  uint32_t crc32;  // IEEE CRC-32 of the section
};

struct CardHeader {
  uint8_t magic[4];
  uint32_t version;
  uint32_t card_bytes;
  uint32_t crc32;         // of bytes 16 .. sizeof(CardHeader)
  uint32_t model_crc32;   // crc32 of the model's header: the model this card was made for
  uint32_t result_crc32;  // the same of the host's checkpoint after the last step
  int32_t image_bytes;    // of one sample: the network's int8 input
  int32_t samples;
  int32_t batch;  // the largest number of samples in a step
  int32_t steps;
  int32_t layers;
  int32_t ops;
  int32_t inferences;       // samples 0 .. inferences-1 have expected activations
  CardSection options;      // TrainerOptions
  CardSection layer_list;   // int32 op index [layers]
  CardSection settings;     // LayerSettings [layers]
  CardSection step_list;    // StepRecord and int32 sample index [batch], for each step
  CardSection sample_list;  // int32 label and the image, padded to 4 bytes, for each sample
  CardSection activations;  // expected uint32 CRC-32 [inferences][ops] of each op's int8 output
  CardSection results;      // expected ResultRecord [steps]
  CardSection parameters;   // expected ParameterRecord [steps][layers], after the step
  CardSection memories;     // float32 of Trainer::memories() before the first step; empty: all 0
};
static_assert(sizeof(CardHeader) == 160, "the header is part of the file format");

struct StepRecord {
  uint32_t step;  // counter of the random streams
  float learning_rate;
  int32_t samples;
};
static_assert(sizeof(StepRecord) == 12, "part of the file format");

struct ResultRecord {
  int64_t loss_sum;  // fixed-point, see core/loss.hpp
  int32_t correct;
  int32_t changed;
};
static_assert(sizeof(ResultRecord) == 16, "part of the file format");

struct ParameterRecord {
  uint32_t weights_crc32;
  uint32_t bias_crc32;
};
static_assert(sizeof(ParameterRecord) == 8, "part of the file format");

}  // namespace pmt::firmware
