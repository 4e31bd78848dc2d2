// The content of the card: `card.img`, written by `pmt export`. Little-endian.
//
// The card is a row of blocks of 512 bytes: 508 of payload and their checksum. So a block says by
// itself whether it is whole, a reader needs no table and no second block to check the first, and a
// section is its blocks' payloads joined. 508 is a multiple of 4: words stay aligned.
//
//   block 0        CardHeader
//   sections       each from a block of its own
//   two slots      checkpoints, written by the board in turn; see state_slots.hpp
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt {

constexpr uint8_t card_magic[4] = {'P', 'M', 'T', 'D'};
constexpr uint32_t card_version = 12;

constexpr size_t payload_bytes = 508;

struct Block {
  uint8_t payload[payload_bytes];
  // IEEE CRC-32 of the block's number (uint32) and the payload: a block that stands in the wrong place is a bad block.
  uint32_t crc32;
};
static_assert(sizeof(Block) == 512, "the block of an SD card");

struct CardSection {
  uint32_t first;  // block
  uint32_t bytes;  // of payload
};

struct CardHeader {
  uint8_t magic[4];
  uint32_t version;
  uint32_t blocks;       // of everything, the slots included
  uint32_t model_crc32;  // crc32 of the model's header: the model this card was made for
  int32_t image_bytes;   // of one sample: the network's int8 input
  int32_t samples;
  int32_t batch;  // the largest number of samples in a step
  int32_t steps;
  int32_t layers;
  int32_t ops;
  int32_t inferences;        // samples 0 .. inferences-1 have expected activations
  int32_t save_interval;     // steps from one checkpoint to the next; there is one after the last, too
  int32_t surprisal_values;  // MeanPrediction: floats at the end of a checkpoint
  int32_t targets;           // floats of a sample in place of its label, one an output; 0: it has a label
  // Blocks of each of the two slots: one for header and marks of a StateSlots, then the checkpoint, padded to
  // state_write_bytes: one after another, the trained weights (int8; not where biases alone are trained) and biases
  // (int32) of each layer, then the float32 of MeanPrediction. Identity: model_crc32; tag: the steps that are done.
  // On a new card the first block is zeros.
  uint32_t slot_blocks;
  uint32_t first_slot;      // block; the second slot stands behind the first
  CardSection options;      // TrainerOptions
  CardSection layer_list;   // int32 op index [layers]
  CardSection streams;      // StreamedOps: which ops stream, as the host has planned it; see core/net/segments.hpp
  CardSection step_list;    // StepRecord and int32 sample index [batch], for each step
  CardSection sample_list;  // int32 label (-1: none) or float32 [targets], and the image, padded to 4 bytes, for each
  CardSection activations;  // expected uint32 CRC-32 [inferences][ops] of each op's int8 output
  CardSection results;      // expected ResultRecord [steps]
  CardSection parameters;   // expected ParameterRecord [steps][layers], after the step
  CardSection surprisal;    // float32 of MeanPrediction before the first step; empty: all 0
  CardSection model;        // the .pmt image; for the host alone, which reads the trained model back
};
static_assert(sizeof(CardHeader) == 144, "the header is part of the file format");

struct StepRecord {
  uint32_t step;  // counter of the random streams
  float learning_rate;
  int32_t samples;
};
static_assert(sizeof(StepRecord) == 12, "part of the file format");

struct ResultRecord {
  int64_t loss_sum;  // fixed-point, see core/zo/loss_units.hpp
  int32_t correct;
  int32_t changed;
};
static_assert(sizeof(ResultRecord) == 16, "part of the file format");

struct ParameterRecord {
  uint32_t weights_crc32;
  uint32_t bias_crc32;
};
static_assert(sizeof(ParameterRecord) == 8, "part of the file format");

}  // namespace pmt
