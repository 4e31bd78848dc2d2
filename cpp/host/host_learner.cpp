#include "host/host_learner.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "core/input/input_stage.hpp"
#include "host/device_memory.hpp"

namespace pmt::host {
namespace {

constexpr uint8_t erased = 0xFF;

std::streamoff place_of(size_t slot_bytes, int32_t slot, size_t at) {
  return static_cast<std::streamoff>(static_cast<size_t>(slot) * slot_bytes + at);
}

uint32_t milliseconds(void*) {
  using namespace std::chrono;
  return static_cast<uint32_t>(
      duration_cast<std::chrono::milliseconds>(steady_clock::now().time_since_epoch()).count());
}

AlignedMemory copied(const std::vector<uint8_t>& bytes) {
  AlignedMemory memory(bytes.size());
  std::copy(bytes.begin(), bytes.end(), memory.data());
  return memory;
}

// Each finds its streams.
std::vector<TrainedLayers> blocks_of(const HostLearnerSetup& setup) {
  std::vector<TrainedLayers> blocks;
  for (const std::vector<int32_t>& block : setup.blocks) {
    blocks.push_back({block.data(), static_cast<int32_t>(block.size()), nullptr, 0});
  }
  return blocks;
}

TrainedBlocks list_of(const std::vector<TrainedLayers>& blocks) {
  return {blocks.data(), static_cast<int32_t>(blocks.size())};
}

LearnerSetup setup_of(const HostLearnerSetup& setup, const std::vector<TrainedLayers>& blocks,
                      const AlignedMemory& image, const Kernels& kernels) {
  LearnerSetup core = {};
  core.image = image.data();
  core.image_bytes = image.bytes();
  if (!setup.clean.empty()) core.clean = setup.clean.data();
  core.clean_count = static_cast<int32_t>(setup.clean.size());
  core.weights = setup.weights;
  core.kernels = &kernels;
  core.chooses_input = setup.chooses_input;
  core.samples = setup.samples;
  core.held_out = setup.held_out;
  core.keeps_confirmed = setup.keeps_confirmed;
  core.keeps_activations = setup.keeps_activations;
  core.trial_goes_on = setup.trial_goes_on;
  core.epochs = {&setup.options, list_of(blocks),     setup.batch,
                 setup.epochs,   setup.learning_rate, setup.final_learning_rate};
  return core;
}

size_t slot_bytes_of(const HostLearnerSetup& setup, const AlignedMemory& image) {
  Model model;
  host::check(model.open(image.data(), image.bytes()));
  const std::vector<TrainedLayers> blocks = blocks_of(setup);
  return StateSlots::bytes_needed(LearnerParameters::largest(model, list_of(blocks), setup.weights));
}

}  // namespace

size_t state_file_bytes(const HostLearnerSetup& setup) { return 2 * slot_bytes_of(setup, copied(setup.image)); }

DeviceLearner plan_learner(const HostLearnerSetup& setup, const Kernels& kernels) {
  const AlignedMemory image = copied(setup.image);
  const std::vector<TrainedLayers> blocks = blocks_of(setup);
  LearnerSetup core = setup_of(setup, blocks, image, kernels);
  core.frames.read = [](void*, int32_t, void*) { return false; };
  Learner learner;
  const AlignedMemory tables(Learner::table_bytes(core));  // that the plan is read from
  open_tables(learner, core, tables);
  return {learner.device_need(), streams_of(learner.plan(), learner.model())};
}

HostLearner::HostLearner(HostLearnerSetup setup)
    : setup_(std::move(setup)), blocks_(blocks_of(setup_)), image_(copied(setup_.image)) {
  Model model;
  host::check(model.open(image_.data(), image_.bytes()));
  frame_bytes_ = static_cast<size_t>(setup_.chooses_input ? frame_bytes(model) : element_count(model.input()));
  frames_.resize(frame_bytes_ * static_cast<size_t>(std::max(setup_.samples, 0)));
  open_storage();
  LearnerSetup core = core_setup();
  LearnerSetup without_state = core;
  without_state.storage = nullptr;
  open_tables(learner_, without_state, AlignedMemory(Learner::table_bytes(core)));
  memory_ = AlignedMemory(learner_.need().needed());
  external_ = AlignedMemory(learner_.need().external);
  core.external = external_.data();
  core.external_bytes = external_.bytes();
  check(learner_.open(core, memory_.data(), memory_.bytes()));
}

LearnerSetup HostLearner::core_setup() {
  LearnerSetup core = setup_of(setup_, blocks_, image_, portable_kernels());
  core.frames = {
      this,
      [](void* context, int32_t index, void* frame) {
        const HostLearner& self = *static_cast<HostLearner*>(context);
        std::memcpy(frame, self.frames_.data() + self.frame_bytes_ * static_cast<size_t>(index), self.frame_bytes_);
        return true;
      },
      [](void* context, int32_t index, const void* frame) {
        HostLearner& self = *static_cast<HostLearner*>(context);
        std::memcpy(self.frames_.data() + self.frame_bytes_ * static_cast<size_t>(index), frame, self.frame_bytes_);
        return true;
      }};
  core.milliseconds = milliseconds;
  if (file_.is_open()) core.storage = &storage_;
  return core;
}

// The file is two slots of the largest state. One that is cut off reads as erased behind its end, and is not written
// to.
void HostLearner::open_storage() {
  if (setup_.storage.empty()) return;
  file_.open(setup_.storage, std::ios::in | std::ios::out | std::ios::binary);
  if (!is_done()) check({Code::state_storage});
  storage_ = {this, slot_bytes_of(setup_, image_), read_slot, write_slot, erase_slot};
  refuse_foreign_file();
}

bool HostLearner::is_cut_off() { return file_.is_open() && file_bytes() < place_of(storage_.slot_bytes, 2, 0); }

std::streamoff HostLearner::file_bytes() {
  file_.clear();
  file_.seekg(0, std::ios::end);
  return file_.tellg();
}

bool HostLearner::is_blank_throughout(char byte) {
  file_.clear();
  file_.seekg(0);
  return std::all_of(std::istreambuf_iterator<char>(file_), {}, [byte](char each) { return each == byte; });
}

// States would overwrite it. Ours has a state in one of its slots, or a header of which no more is damaged than the
// first word. It may begin blank, too, as an erase() leaves it that a power cut has stopped, if its size is that of two
// slots; a file of another size is blank throughout.
void HostLearner::refuse_foreign_file() {
  StateHeader header = {};
  uint32_t second = 0;
  if (!read_slot(this, 0, 0, &header, sizeof header) || !read_slot(this, 1, 0, &second, sizeof second)) {
    check({Code::state_storage});
  }
  const uint32_t first = header.magic;
  if (first == state_magic || second == state_magic) return;
  const bool begins_blank = first == 0 || first == ~uint32_t{0};
  if (begins_blank && file_bytes() == place_of(storage_.slot_bytes, 2, 0)) return;
  if (begins_blank && is_blank_throughout(static_cast<char>(first))) return;
  header.magic = state_magic;
  if (header.header_crc32 == StateSlots::checksum(header)) return;
  throw std::invalid_argument("storage='" + setup_.storage +
                              "' is no file of states, and would be overwritten: choose another file");
}

bool HostLearner::read_slot(void* context, int32_t slot, size_t at, void* to, size_t count) {
  HostLearner& self = *static_cast<HostLearner*>(context);
  self.file_.clear();
  errno = 0;
  self.file_.seekg(place_of(self.storage_.slot_bytes, slot, at));
  self.file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count));
  const auto read = static_cast<size_t>(std::max<std::streamsize>(self.file_.gcount(), 0));
  std::fill_n(static_cast<uint8_t*>(to) + read, count - read, erased);
  if (self.file_.eof()) self.file_.clear();
  return self.is_done();
}

bool HostLearner::write_slot(void* context, int32_t slot, size_t at, const void* from, size_t count) {
  HostLearner& self = *static_cast<HostLearner*>(context);
  if (self.is_cut_off()) return false;
  self.file_.clear();
  errno = 0;
  self.file_.seekp(place_of(self.storage_.slot_bytes, slot, at));
  self.file_.write(static_cast<const char*>(from), static_cast<std::streamsize>(count));
  self.file_.flush();
  return self.is_done();
}

// Whether the file did what it was asked for; if not, keeps the reason.
bool HostLearner::is_done() {
  storage_error_ = 0;
  if (file_.is_open() && file_.good()) return true;
  storage_error_ = errno != 0 ? errno : EIO;
  return false;
}

void HostLearner::check(const Status& status) const {
  if (status.code == Code::state_storage && storage_error_ != 0) throw StorageError{storage_error_, setup_.storage};
  if (status.code == Code::state_storage && learner_.on_trial())
    refuse_state("was damaged meanwhile, and stays on trial: roll_back(), and learn again");
  if (status.code == Code::state_storage)
    refuse_state("is damaged, or cannot be one of this model: choose another file");
  if (status.code == Code::learner_filters) refuse_state("has filters of its own: take a learner of choose_input=True");
  host::check(status);
}

void HostLearner::refuse_state(const std::string& reason) const {
  throw std::invalid_argument("storage='" + setup_.storage + "': the stored state " + reason);
}

bool HostLearner::erase_slot(void* context, int32_t slot) {
  const std::vector<uint8_t> blank(static_cast<HostLearner*>(context)->storage_.slot_bytes, erased);
  return write_slot(context, slot, 0, blank.data(), blank.size());
}

std::vector<uint8_t> HostLearner::image_in_force() const {
  HostModel adapted(setup_.image.data(), setup_.image.size());
  const Model& model = adapted.model();
  std::vector<WritableLayer> layers(static_cast<size_t>(model.op_count()));
  learner_.fill_in_force(layers.data());
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const WritableLayer& from = layers[static_cast<size_t>(i)];
    if (from.weights == nullptr && from.bias == nullptr) continue;
    const WritableLayer to = adapted.writable_layer(i);
    const int32_t channels = model.output_of(model.op(i)).channels;
    if (from.weights != nullptr) std::copy_n(from.weights, weight_count(model, model.op(i)), to.weights);
    if (from.bias != nullptr) std::copy_n(from.bias, channels, to.bias);
    if (from.weight_scales != nullptr) std::copy_n(from.weight_scales, channels, to.weight_scales);
  }
  return adapted.image();
}

}  // namespace pmt::host
