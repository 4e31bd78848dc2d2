#include "core/learner/state_slots.hpp"

#include "core/base/crc32.hpp"

namespace pmt {
namespace {

constexpr uint32_t slot_magic = 0x534D5450;  // "PTMS"
constexpr uint32_t slot_version = 1;
constexpr uint32_t mark_word = 0x4B52414D;  // "MARK"
constexpr size_t marks_at = state_write_bytes;

size_t rounded(size_t bytes) { return (bytes + state_write_bytes - 1) / state_write_bytes * state_write_bytes; }

}  // namespace

// Collects bytes until there are as many as are written at once.
class StateSlots::Writer {
 public:
  Writer(const StateStorage& storage, int32_t slot, size_t at) : storage_(storage), slot_(slot), at_(at) {}

  bool add(const uint8_t* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      piece_[filled_++] = bytes[i];
      if (filled_ == state_write_bytes && !flush()) return false;
    }
    return true;
  }
  bool flush() {
    if (filled_ == 0) return true;
    while (filled_ < state_write_bytes) piece_[filled_++] = 0;
    const bool written = storage_.write(storage_.context, slot_, at_, piece_, state_write_bytes);
    at_ += state_write_bytes;
    filled_ = 0;
    return written;
  }

 private:
  const StateStorage& storage_;
  int32_t slot_;
  size_t at_;
  alignas(8) uint8_t piece_[state_write_bytes];
  size_t filled_ = 0;
};

size_t StateSlots::bytes_needed(size_t state_bytes) { return bytes_before_state + rounded(state_bytes); }

void StateSlots::open(const StateStorage& storage, const Model& model, uint32_t identity) {
  storage_ = storage;
  model_ = &model;
  identity_ = identity;
  has_others_ = false;
  current_ = -1;
}

uint32_t StateSlots::checksum(const Header& header) {
  return crc32(reinterpret_cast<const uint8_t*>(&header), offsetof(Header, header_crc32));
}

// A mark counts where it is whole; a boot, where anything was written: a power cut must not give one more.
Status StateSlots::read_mark(int32_t index, int32_t mark, bool* set) const {
  uint32_t words[2] = {};
  const size_t at = marks_at + static_cast<size_t>(mark) * state_write_bytes;
  if (!storage_.read(storage_.context, index, at, words, sizeof words)) return {Code::state_storage, index};
  const bool whole = words[0] == mark_word && words[1] == ~mark_word;
  const bool blank = words[0] == words[1] && (words[0] == 0 || words[0] == ~uint32_t{0});
  *set = mark >= first_boot ? !blank : whole;
  return {};
}

Status StateSlots::read_slot(int32_t index, Slot* slot) {
  *slot = {};
  Header& header = slot->header;
  if (!storage_.read(storage_.context, index, 0, &header, sizeof header)) return {Code::state_storage, index};
  const bool whole = header.magic == slot_magic && header.version == slot_version &&
                     header.header_crc32 == checksum(header) && state_of(header) > LearnerState::original &&
                     words<LearnerState>.holds(state_of(header)) && header.state >> 8 < learner_states - 1;
  if (whole && header.identity != identity_) has_others_ = true;
  if (!whole || header.identity != identity_ || header.bytes > storage_.slot_bytes) return {};
  if (bytes_needed(header.bytes) > storage_.slot_bytes) return {};
  PMT_RETURN_IF_ERROR(read_mark(index, confirmed, &slot->is_confirmed));
  PMT_RETURN_IF_ERROR(read_mark(index, rejected, &slot->is_rejected));
  for (int32_t i = 0; i < state_trials; ++i) {
    bool booted = false;
    PMT_RETURN_IF_ERROR(read_mark(index, first_boot + i, &booted));
    slot->boots += booted ? 1 : 0;
  }
  return check_payload(index, slot);
}

Status StateSlots::check_payload(int32_t index, Slot* slot) const {
  uint8_t piece[state_write_bytes];
  uint32_t crc = 0;
  for (size_t done = 0; done < slot->header.bytes; done += sizeof piece) {
    const size_t left = slot->header.bytes - done, count = left < sizeof piece ? left : sizeof piece;
    if (!storage_.read(storage_.context, index, bytes_needed(0) + done, piece, count)) {
      return {Code::state_storage, index};
    }
    crc = crc32(piece, count, crc);
  }
  slot->valid = crc == slot->header.payload_crc32;
  return {};
}

// The slot of the newest state that is confirmed, or on trial; -1: none.
int32_t StateSlots::newest(bool on_trial) const {
  int32_t found = -1;
  for (int32_t i = 0; i < 2; ++i) {
    const Slot& slot = slots_[i];
    if (!slot.valid || slot.is_rejected || slot.is_confirmed == on_trial) continue;
    if (on_trial && slot.boots >= state_trials) continue;
    if (found < 0 || slot.header.generation > slots_[found].header.generation) found = i;
  }
  return found;
}

Status StateSlots::boot(LearnerState* state, bool* on_trial) {
  for (int32_t i = 0; i < 2; ++i) PMT_RETURN_IF_ERROR(read_slot(i, &slots_[i]));
  const int32_t trial = newest(true), known = newest(false);
  // A trial older than what is confirmed was left behind.
  const bool tries = trial >= 0 && (known < 0 || slots_[trial].header.generation > slots_[known].header.generation);
  current_ = tries ? trial : known;
  *on_trial = tries;
  *state = current_ < 0 ? LearnerState::original : state_of(slots_[current_].header);
  return tries ? set_mark(first_boot + slots_[trial].boots++) : Status{};
}

Status StateSlots::load(LearnerParameters& parameters) {
  const Header& header = slots_[current_].header;
  const LearnerState state = state_of(header);
  parameters.set_base(static_cast<LearnerState>(header.state >> 8));
  if (parameters.bytes(*model_, state) != header.bytes) return {Code::state_size};
  size_t at = bytes_needed(0);
  for (int32_t i = 0;; ++i) {
    const StatePart part = parameters.part(*model_, state, i);
    if (part.bytes == nullptr) return {};
    if (!storage_.read(storage_.context, current_, at, part.bytes, part.count)) return {Code::state_storage, current_};
    at += part.count;
  }
}

Status StateSlots::write(const LearnerParameters& parameters, LearnerState state) {
  const int32_t known = newest(false), slot = known == 0 ? 1 : 0;
  const auto base = static_cast<uint32_t>(state == LearnerState::trained ? parameters.base() : LearnerState::original);
  Header header = {slot_magic, slot_version, identity_, 1, static_cast<uint32_t>(state) | base << 8, 0, 0, 0};
  header.bytes = static_cast<uint32_t>(parameters.bytes(*model_, state));
  for (const Slot& each : slots_) {
    if (each.valid && each.header.generation >= header.generation) header.generation = each.header.generation + 1;
  }
  if (bytes_needed(header.bytes) > storage_.slot_bytes) return {Code::state_size};
  slots_[slot] = {};
  if (!storage_.erase(storage_.context, slot)) return {Code::state_storage, slot};
  Writer payload(storage_, slot, bytes_needed(0));
  for (int32_t i = 0;; ++i) {
    const StatePart part = parameters.part(*model_, state, i);
    if (part.bytes == nullptr) break;
    if (!payload.add(part.bytes, part.count)) return {Code::state_storage, slot};
    header.payload_crc32 = crc32(part.bytes, part.count, header.payload_crc32);
  }
  header.header_crc32 = checksum(header);
  if (!payload.flush() || !storage_.write(storage_.context, slot, 0, &header, sizeof header)) {
    return {Code::state_storage, slot};
  }
  slots_[slot] = {header, true, false, false, 0};
  current_ = slot;
  return {};
}

Status StateSlots::set_mark(int32_t mark) {
  alignas(8) uint32_t words[state_write_bytes / sizeof(uint32_t)] = {mark_word, ~mark_word};
  const size_t at = marks_at + static_cast<size_t>(mark) * state_write_bytes;
  return storage_.write(storage_.context, current_, at, words, sizeof words) ? Status{}
                                                                             : Status{Code::state_storage, current_};
}

Status StateSlots::confirm() {
  PMT_RETURN_IF_ERROR(set_mark(confirmed));
  slots_[current_].is_confirmed = true;
  return {};
}

Status StateSlots::roll_back(LearnerState* state) {
  PMT_RETURN_IF_ERROR(set_mark(rejected));
  slots_[current_].is_rejected = true;
  current_ = newest(false);
  *state = current_ < 0 ? LearnerState::original : state_of(slots_[current_].header);
  return {};
}

}  // namespace pmt
