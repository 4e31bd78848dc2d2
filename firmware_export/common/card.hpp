// The reader of the card's data. open() checks the header and the list of the steps; every block is
// checked when it is read, and records are read when they are needed, so that the card costs no memory.
#pragma once

#include "common/storage.hpp"
#include "core/image/model.hpp"
#include "core/net/segments.hpp"
#include "core/zo/layer.hpp"

namespace pmt::firmware {

// The description of an error; nullptr where there is none.
using Problem = const char*;

class Card {
 public:
  // `model` is the one in flash; a card made for another one is refused. Where the storage has a
  // fault, that says more than the problem.
  Problem open(Storage* storage, const Model& model);

  const CardHeader& header() const { return header_; }

  bool options(TrainerOptions* options) const;
  bool layer(int32_t index, int32_t* op) const;
  int32_t stream_count() const;
  bool stream(int32_t index, StreamedOps* stream) const;
  // `values` takes header().surprisal.bytes.
  bool surprisal(float* values) const;
  bool step(int32_t step, StepRecord* record) const;
  // Sample number `position` of a step.
  bool step_sample(int32_t step, int32_t position, int32_t* sample) const;
  // `image` takes header().image_bytes.
  bool sample(int32_t index, int8_t* image, int32_t* label) const;
  // `targets` takes header().targets floats.
  bool targets(int32_t index, float* targets) const;
  bool activation(int32_t inference, int32_t op, uint32_t* crc32) const;
  bool result(int32_t step, ResultRecord* record) const;
  bool parameters(int32_t step, int32_t layer, ParameterRecord* record) const;

 private:
  Problem check_header(const Model& model) const;
  Problem check_sections() const;
  Problem check_records() const;
  int64_t step_bytes() const;
  int64_t label_bytes() const;
  int64_t sample_bytes() const;
  // One copy: compilers put it into each of its callers, which costs flash.
  __attribute__((noinline)) bool read(const CardSection& section, int64_t offset, void* bytes, size_t count) const;

  CardHeader header_ = {};
  Storage* storage_ = nullptr;
};

struct StepReader {
  const Card* card;
  int32_t step;
};

// Reads sample number `index` of a step, for a trainer; `context` is a StepReader.
bool read_sample(void* context, int32_t index, int8_t* image, int32_t* label);
// Its targets.
bool read_targets(void* context, int32_t index, float* targets);

}  // namespace pmt::firmware
