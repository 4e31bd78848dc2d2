#include "common/card.hpp"

namespace pmt::firmware {
namespace {

constexpr int32_t most_records = 1 << 24;

bool inside(int32_t value, int32_t low, int32_t high) { return value >= low && value <= high; }

uint64_t end_block(const CardSection& section) {
  return section.first + (uint64_t{section.bytes} + payload_bytes - 1) / payload_bytes;
}

}  // namespace

#define PMT_RETURN_IF_PROBLEM(expression)           \
  do {                                              \
    const Problem pmt_problem = (expression);       \
    if (pmt_problem != nullptr) return pmt_problem; \
  } while (0)

Problem Card::open(Storage* storage, const Model& model) {
  storage_ = storage;
  if (!storage->open()) return "it does not open";
  const uint8_t* payload = storage->read(0);
  if (payload == nullptr) {
    if (storage->fault().damaged) storage->forget_fault();  // this says what the damage means
    return "this is not a card of pmt export, or of another version, or its header is damaged";
  }
  __builtin_memcpy(&header_, payload, sizeof header_);
  for (int i = 0; i < 4; ++i) {
    if (header_.magic[i] != card_magic[i]) return "this is not a card of pmt export";
  }
  if (header_.version != card_version) return "the card has a version that this firmware does not read";
  if (header_.blocks > storage->blocks()) return "the card is smaller than its header says";
  PMT_RETURN_IF_PROBLEM(check_header(model));
  PMT_RETURN_IF_PROBLEM(check_sections());
  return check_records();
}

Problem Card::check_header(const Model& model) const {
  const CardHeader& h = header_;
  if (h.model_crc32 != model.header().crc32) return "the card was made for another model: export again";
  if (h.image_bytes != element_count(model.input())) return "the samples do not have the model's input size";
  if (h.targets != 0 && h.targets != model.classes()) return "the samples do not have a target for each output";
  if (h.ops != model.op_count()) return "the card does not have the model's number of ops";
  const bool counts = inside(h.samples, 1, most_records) && inside(h.steps, 0, most_records) &&
                      inside(h.batch, 1, most_records) && inside(h.layers, 1, h.ops) &&
                      inside(stream_count(), 0, h.ops) && inside(h.inferences, 0, h.samples) &&
                      inside(h.save_interval, 1, most_records);
  return counts ? nullptr : "a count in the header is out of range";
}

int64_t Card::step_bytes() const { return static_cast<int64_t>(sizeof(StepRecord)) + 4 * int64_t{header_.batch}; }

int64_t Card::label_bytes() const { return 4 * int64_t{header_.targets > 0 ? header_.targets : 1}; }

int64_t Card::sample_bytes() const { return label_bytes() + (int64_t{header_.image_bytes} + 3) / 4 * 4; }

Problem Card::check_sections() const {
  const CardHeader& h = header_;
  const struct {
    CardSection section;
    int64_t bytes;
  } expected[] = {
      {h.options, sizeof(TrainerOptions)},
      {h.layer_list, 4 * int64_t{h.layers}},
      {h.streams, int64_t{sizeof(StreamedOps)} * stream_count()},
      {h.step_list, step_bytes() * h.steps},
      {h.sample_list, sample_bytes() * h.samples},
      {h.activations, 4 * int64_t{h.inferences} * h.ops},
      {h.results, int64_t{sizeof(ResultRecord)} * h.steps},
      {h.parameters, int64_t{sizeof(ParameterRecord)} * h.steps * h.layers},
      {h.surprisal, h.surprisal.bytes},  // the trainer knows how many
      {h.model, h.model.bytes},
  };
  for (const auto& entry : expected) {
    if (entry.section.bytes != entry.bytes) return "a section does not have the size its counts give";
    if (entry.section.first < 1 || end_block(entry.section) > h.first_slot) return "a section lies outside the card";
  }
  const bool slots = h.slot_blocks >= 2 && h.first_slot + 2 * uint64_t{h.slot_blocks} <= h.blocks;
  return slots ? nullptr : "the slots of the checkpoints lie outside the card";
}

// Options, layers and labels are checked by the trainer; the indices of samples are the card's own.
Problem Card::check_records() const {
  for (int32_t s = 0; s < header_.steps; ++s) {
    StepRecord record;
    if (!step(s, &record)) return "a step cannot be read";
    if (!inside(record.samples, 1, header_.batch)) return "a step has no samples or more than the batch";
    for (int32_t i = 0; i < record.samples; ++i) {
      int32_t index = 0;
      if (!step_sample(s, i, &index)) return "a step cannot be read";
      if (!inside(index, 0, header_.samples - 1)) return "a step names a sample that the card does not have";
    }
  }
  return nullptr;
}

bool Card::read(const CardSection& section, int64_t offset, void* bytes, size_t count) const {
  return offset >= 0 && offset + static_cast<int64_t>(count) <= section.bytes &&
         storage_->read_bytes(section.first, static_cast<size_t>(offset), bytes, count);
}

bool Card::options(TrainerOptions* options) const { return read(header_.options, 0, options, sizeof *options); }

bool Card::layer(int32_t index, int32_t* op) const { return read(header_.layer_list, 4 * int64_t{index}, op, 4); }

int32_t Card::stream_count() const { return static_cast<int32_t>(header_.streams.bytes / sizeof(StreamedOps)); }

bool Card::stream(int32_t index, StreamedOps* stream) const {
  return read(header_.streams, int64_t{sizeof *stream} * index, stream, sizeof *stream);
}

bool Card::surprisal(float* values) const { return read(header_.surprisal, 0, values, header_.surprisal.bytes); }

bool Card::step(int32_t step, StepRecord* record) const {
  return read(header_.step_list, step_bytes() * step, record, sizeof *record);
}

bool Card::step_sample(int32_t step, int32_t position, int32_t* sample) const {
  const int64_t offset = step_bytes() * step + int64_t{sizeof(StepRecord)} + 4 * int64_t{position};
  return position < header_.batch && read(header_.step_list, offset, sample, 4);
}

bool Card::sample(int32_t index, int8_t* image, int32_t* label) const {
  const int64_t offset = sample_bytes() * index;
  *label = -1;
  return (header_.targets > 0 || read(header_.sample_list, offset, label, 4)) &&
         read(header_.sample_list, offset + label_bytes(), image, static_cast<size_t>(header_.image_bytes));
}

bool Card::targets(int32_t index, float* targets) const {
  return read(header_.sample_list, sample_bytes() * index, targets,
              sizeof(float) * static_cast<size_t>(header_.targets));
}

bool Card::activation(int32_t inference, int32_t op, uint32_t* crc32) const {
  return read(header_.activations, 4 * (int64_t{inference} * header_.ops + op), crc32, 4);
}

bool Card::result(int32_t step, ResultRecord* record) const {
  return read(header_.results, int64_t{sizeof *record} * step, record, sizeof *record);
}

bool Card::parameters(int32_t step, int32_t layer, ParameterRecord* record) const {
  const int64_t index = int64_t{step} * header_.layers + layer;
  return read(header_.parameters, int64_t{sizeof *record} * index, record, sizeof *record);
}

bool read_sample(void* context, int32_t index, int8_t* image, int32_t* label) {
  const StepReader& reader = *static_cast<const StepReader*>(context);
  int32_t sample = 0;
  return reader.card->step_sample(reader.step, index, &sample) && reader.card->sample(sample, image, label);
}

bool read_targets(void* context, int32_t index, float* targets) {
  const StepReader& reader = *static_cast<const StepReader*>(context);
  int32_t sample = 0;
  return reader.card->step_sample(reader.step, index, &sample) && reader.card->targets(sample, targets);
}

}  // namespace pmt::firmware
