#include "common/card.hpp"

#include "common/board.hpp"
#include "core/crc32.hpp"

namespace pmt::firmware {
namespace {

constexpr size_t block_bytes = 512;  // of an SD card
constexpr int32_t most_records = 1 << 24;
constexpr size_t checked_from = 16;  // of the header; what stands before is fixed or is the checksum

bool inside(int32_t value, int32_t low, int32_t high) { return value >= low && value <= high; }

}  // namespace

#define PMT_RETURN_IF_PROBLEM(expression)           \
  do {                                              \
    const Problem pmt_problem = (expression);       \
    if (pmt_problem != nullptr) return pmt_problem; \
  } while (0)

Problem Card::open(const char* name, const Model& model) {
  file_ = board::open(name, board::Access::read);
  if (file_ == board::no_file) return "the file cannot be opened";
  const int64_t bytes = board::size(file_);
  if (bytes < static_cast<int64_t>(sizeof(CardHeader))) return "the file is shorter than its header";
  if (!board::read(file_, 0, &header_, sizeof header_)) return "the header cannot be read";
  for (int i = 0; i < 4; ++i) {
    if (header_.magic[i] != card_magic[i]) return "this is no card of pmt export";
  }
  if (header_.version != card_version) return "the card has a version that this firmware does not read";
  if (header_.card_bytes != bytes) return "the file is not as long as its header says";
  const auto* start = reinterpret_cast<const uint8_t*>(&header_);
  if (crc32(start + checked_from, sizeof header_ - checked_from) != header_.crc32) return "the header is damaged";
  PMT_RETURN_IF_PROBLEM(check_header(model));
  PMT_RETURN_IF_PROBLEM(check_sections());
  return check_records();
}

Problem Card::check_header(const Model& model) const {
  const CardHeader& h = header_;
  if (h.model_crc32 != model.header().crc32) return "the card was made for another model: export again";
  if (h.image_bytes != element_count(model.input())) return "the samples do not have the model's input size";
  if (h.ops != model.op_count()) return "the card does not have the model's number of ops";
  const bool counts = inside(h.samples, 1, most_records) && inside(h.steps, 0, most_records) &&
                      inside(h.batch, 1, most_records) && inside(h.layers, 1, h.ops) &&
                      inside(h.inferences, 0, h.samples);
  return counts ? nullptr : "a count in the header is out of range";
}

int64_t Card::step_bytes() const { return static_cast<int64_t>(sizeof(StepRecord)) + 4 * int64_t{header_.batch}; }

int64_t Card::sample_bytes() const { return 4 + (int64_t{header_.image_bytes} + 3) / 4 * 4; }

Problem Card::check_sections() const {
  const CardHeader& h = header_;
  const struct {
    CardSection section;
    int64_t bytes;
  } expected[] = {
      {h.options, sizeof(TrainerOptions)},
      {h.layer_list, 4 * int64_t{h.layers}},
      {h.settings, int64_t{sizeof(LayerSettings)} * h.layers},
      {h.step_list, step_bytes() * h.steps},
      {h.sample_list, sample_bytes() * h.samples},
      {h.activations, 4 * int64_t{h.inferences} * h.ops},
      {h.results, int64_t{sizeof(ResultRecord)} * h.steps},
      {h.parameters, int64_t{sizeof(ParameterRecord)} * h.steps * h.layers},
      {h.memories, h.memories.bytes},  // the trainer knows how many
  };
  for (const auto& entry : expected) {
    if (entry.section.bytes != entry.bytes) return "a section does not have the size its counts give";
    const uint64_t end = uint64_t{entry.section.offset} + entry.section.bytes;
    if (entry.section.offset < sizeof(CardHeader) || end > h.card_bytes) return "a section lies outside the file";
    PMT_RETURN_IF_PROBLEM(check_checksum(entry.section));
  }
  return nullptr;
}

Problem Card::check_checksum(const CardSection& section) const {
  uint8_t block[block_bytes];
  uint32_t crc = 0;
  for (uint32_t done = 0; done < section.bytes;) {
    const size_t rest = section.bytes - done;
    const size_t count = rest < block_bytes ? rest : block_bytes;
    if (!board::read(file_, section.offset + done, block, count)) return "a section cannot be read";
    crc = crc32(block, count, crc);
    done += count;
  }
  return crc == section.crc32 ? nullptr : "the checksum of a section differs: the card is damaged";
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
  if (offset < 0 || offset + static_cast<int64_t>(count) > section.bytes) return false;
  return board::read(file_, section.offset + static_cast<uint32_t>(offset), bytes, count);
}

bool Card::options(TrainerOptions* options) const { return read(header_.options, 0, options, sizeof *options); }

bool Card::settings(int32_t index, LayerSettings* settings) const {
  return read(header_.settings, int64_t{sizeof *settings} * index, settings, sizeof *settings);
}

bool Card::layer(int32_t index, int32_t* op) const { return read(header_.layer_list, 4 * int64_t{index}, op, 4); }

bool Card::memories(float* values) const { return read(header_.memories, 0, values, header_.memories.bytes); }

bool Card::step(int32_t step, StepRecord* record) const {
  return read(header_.step_list, step_bytes() * step, record, sizeof *record);
}

bool Card::step_sample(int32_t step, int32_t position, int32_t* sample) const {
  const int64_t offset = step_bytes() * step + int64_t{sizeof(StepRecord)} + 4 * int64_t{position};
  return position < header_.batch && read(header_.step_list, offset, sample, 4);
}

bool Card::sample(int32_t index, int8_t* image, int32_t* label) const {
  const int64_t offset = sample_bytes() * index;
  return read(header_.sample_list, offset, label, 4) &&
         read(header_.sample_list, offset + 4, image, static_cast<size_t>(header_.image_bytes));
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

}  // namespace pmt::firmware
