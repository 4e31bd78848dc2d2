#include "core/card/state_slots.hpp"

#include "core/base/crc32.hpp"
#include "core/base/linked/learning.hpp"

namespace pmt {
namespace {

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
  __attribute__((noinline)) bool flush() {
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

size_t StateParts::bytes() const {
  size_t sum = 0;
  for (int32_t i = 0; (*this)[i].bytes != nullptr; ++i) sum += (*this)[i].count;
  return sum;
}

size_t StateSlots::bytes_needed(size_t state_bytes) { return bytes_before_state + rounded(state_bytes); }

void StateSlots::open(const StateStorage& storage, uint32_t identity) {
  storage_ = storage;
  identity_ = identity;
  has_others_ = false;
  current_ = -1;
}

uint32_t StateSlots::checksum(const StateHeader& header) {
  return crc32(reinterpret_cast<const uint8_t*>(&header), offsetof(StateHeader, header_crc32));
}

// A mark counts where one of its words is whole: a flipped bit must not take it back, and a power cut leaves one word
// only where the mark was asked for. A boot counts where anything was written: a cut must not give one more.
Status StateSlots::read_mark(int32_t index, int32_t mark, bool* set) const {
  uint32_t words[2] = {};
  const size_t at = marks_at + static_cast<size_t>(mark) * state_write_bytes;
  if (!storage_.read(storage_.context, index, at, words, sizeof words)) return {Code::state_storage, index};
  const bool either = words[0] == mark_word || words[1] == ~mark_word;
  const bool blank = words[0] == words[1] && (words[0] == 0 || words[0] == ~uint32_t{0});
  *set = mark >= first_boot ? !blank : either;
  return {};
}

Status StateSlots::read_slot(int32_t index) {
  Slot& slot = slots_[index];
  slot = {};
  StateHeader& header = slot.header;
  if (!storage_.read(storage_.context, index, 0, &header, sizeof header)) return {Code::state_storage, index};
  slot.is_blank = header.magic == 0;
  slot.is_whole =
      header.magic == state_magic && header.version == state_version && header.header_crc32 == checksum(header);
  if (!slot.is_whole) return {};
  if (header.identity != identity_) {
    has_others_ = true;
    return {};
  }
  if (header.bytes > storage_.slot_bytes || bytes_needed(header.bytes) > storage_.slot_bytes) return {};
  if (!linked::learning || (header.tag & confirmed_bit) != 0) {
    slot.is_confirmed = true;
  } else {
    PMT_RETURN_IF_ERROR(read_marks(index));
  }
  check_payload(index);
  return {};
}

Status StateSlots::read_marks(int32_t index) {
  Slot& slot = slots_[index];
  PMT_RETURN_IF_ERROR(read_mark(index, confirmed, &slot.is_confirmed));
  PMT_RETURN_IF_ERROR(read_mark(index, rejected, &slot.is_rejected));
  // In order: where a bit has flipped behind them, the next boots are still to be written.
  for (bool booted = true; slot.boots < state_trials; ++slot.boots) {
    PMT_RETURN_IF_ERROR(read_mark(index, first_boot + slot.boots, &booted));
    if (!booted) break;
  }
  return {};
}

void StateSlots::check_payload(int32_t index) {
  Slot& slot = slots_[index];
  uint8_t piece[state_write_bytes];
  uint32_t crc = 0;
  for (size_t done = 0; done < slot.header.bytes; done += sizeof piece) {
    const size_t left = slot.header.bytes - done, count = left < sizeof piece ? left : sizeof piece;
    // A state that cannot be read is none, as one that is damaged: the other may be whole.
    if (!storage_.read(storage_.context, index, bytes_before_state + done, piece, count)) return;
    crc = crc32(piece, count, crc);
  }
  slot.valid = crc == slot.header.payload_crc32;
}

// The slot of the newest state that is confirmed, or on trial after `most_boots` at most; -1: none.
int32_t StateSlots::newest(bool on_trial, int32_t most_boots) const {
  int32_t found = -1;
  for (int32_t i = 0; i < 2; ++i) {
    const Slot& slot = slots_[i];
    if (!slot.valid || slot.is_rejected || slot.is_confirmed == on_trial) continue;
    if (on_trial && slot.boots > most_boots) continue;
    if (found < 0 || slot.header.generation > slots_[found].header.generation) found = i;
  }
  return found;
}

Status StateSlots::boot(bool is_reset) {
  for (int32_t i = 0; i < 2; ++i) PMT_RETURN_IF_ERROR(read_slot(i));
  const int32_t most_boots = is_reset ? state_trials - 1 : state_trials;
  const int32_t trial = linked::learning ? newest(true, most_boots) : -1, known = newest(false);
  // A trial older than what is confirmed was left behind.
  const bool tries = trial >= 0 && (known < 0 || slots_[trial].header.generation > slots_[known].header.generation);
  current_ = tries ? trial : known;
  // Where its boots cannot be counted, a state on trial would never be given up.
  const bool counts = linked::learning && is_reset && tries;
  if (counts && !set_mark(first_boot + slots_[trial].boots++).ok()) current_ = known;
  return {};
}

bool StateSlots::has_damaged() const {
  for (const Slot& slot : slots_) {
    const uint32_t first = slot.header.magic;
    const bool is_written = first != 0 && first != ~uint32_t{0};
    const bool is_others = slot.is_whole && slot.header.identity != identity_;
    if (is_written && !is_others && !slot.valid) return true;
  }
  return false;
}

bool StateSlots::never_written() const {
  return (slots_[0].is_blank || slots_[1].is_blank) && !slots_[0].is_whole && !slots_[1].is_whole;
}

Status StateSlots::load(const StateParts& parts) const {
  if (parts.bytes() != slots_[current_].header.bytes) return {Code::state_size};
  size_t at = bytes_before_state;
  uint32_t crc = 0;
  bool is_read = true;
  for (int32_t i = 0; is_read && parts[i].bytes != nullptr; ++i) {
    const StatePart part = parts[i];
    is_read = storage_.read(storage_.context, current_, at, part.bytes, part.count);
    crc = crc32(part.bytes, part.count, crc);
    at += part.count;
  }
  // The storage may have been damaged since it was opened.
  if (is_read && crc == slots_[current_].header.payload_crc32) return {};
  return {Code::state_storage, current_};
}

Status StateSlots::write(const StateParts& parts, uint32_t tag, bool on_trial) {
  const size_t bytes = parts.bytes();
  if (bytes_needed(bytes) > storage_.slot_bytes) return {Code::state_size};
  const int32_t index = newest(false) == 0 ? 1 : 0;
  uint32_t generation = 0;
  for (const Slot& each : slots_) {
    if (each.is_whole && each.header.generation > generation) generation = each.header.generation;
  }
  Slot& slot = slots_[index];
  slot = {};
  StateHeader& header = slot.header;
  header = {state_magic,
            state_version,
            identity_,
            generation + 1,
            on_trial ? tag : tag | confirmed_bit,
            static_cast<uint32_t>(bytes),
            0,
            0};
  Writer payload(storage_, index, bytes_before_state);
  bool written = storage_.erase(storage_.context, index);
  for (int32_t i = 0; written; ++i) {
    const StatePart part = parts[i];
    if (part.bytes == nullptr) break;
    header.payload_crc32 = crc32(part.bytes, part.count, header.payload_crc32);
    written = payload.add(part.bytes, part.count);
  }
  if (!written || !payload.flush()) return {Code::state_storage, index};
  header.header_crc32 = checksum(header);
  if (!storage_.write(storage_.context, index, 0, &header, sizeof header)) return {Code::state_storage, index};
  slot.is_whole = slot.valid = true;
  slot.is_confirmed = !on_trial;
  current_ = index;
  return {};
}

Status StateSlots::set_mark(int32_t mark) {
  alignas(8) uint32_t words[state_write_bytes / sizeof(uint32_t)] = {mark_word, ~mark_word};
  const size_t at = marks_at + static_cast<size_t>(mark) * state_write_bytes;
  return storage_.write(storage_.context, current_, at, words, sizeof words) ? Status{}
                                                                             : Status{Code::state_storage, current_};
}

Status StateSlots::confirm() {
  // A rejection that failed may be on the storage all the same, where it would win.
  if (slots_[current_].is_rejected) return {Code::state_storage, current_};
  PMT_RETURN_IF_ERROR(set_mark(confirmed));
  slots_[current_].is_confirmed = true;
  return {};
}

Status StateSlots::roll_back() {
  slots_[current_].is_rejected = true;
  PMT_RETURN_IF_ERROR(set_mark(rejected));
  current_ = newest(false);
  return {};
}

}  // namespace pmt
