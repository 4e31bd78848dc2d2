#include "core/card/state_slots.hpp"

#include "core/base/crc32.hpp"
#include "core/base/linked/learning.hpp"

namespace pmt {
namespace {

constexpr uint32_t mark_word = 0x4B52414D;  // "MARK"
constexpr size_t marks_at = state_write_bytes;

// Whether bytes are zeros or ones throughout, as where nothing was written to.
__attribute__((noinline)) bool is_erased(const void* at, size_t count) {
  const auto* bytes = static_cast<const uint8_t*>(at);
  for (size_t i = 1; i < count; ++i) {
    if (bytes[i] != bytes[0]) return false;
  }
  return bytes[0] == 0 || bytes[0] == 0xFF;
}

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

Status StateSlots::failed(int32_t index) { return {Code::state_storage, index}; }

bool StateSlots::read(int32_t index, size_t at, void* to, size_t count) const {
  return storage_.read(storage_.context, index, at, to, count);
}

bool StateSlots::read_slot(int32_t index) {
  Slot& slot = slots_[index];
  slot = {};
  StateHeader& header = slot.header;
  if (!read(index, 0, &header, sizeof header)) return false;
  const bool erased = is_erased(&header, sizeof header);
  slot.is_blank = erased && header.magic == 0;
  slot.is_whole =
      header.magic == state_magic && header.version == state_version && header.header_crc32 == checksum(header);
  slot.is_damaged = !erased;
  if (!slot.is_whole) return true;
  if (header.identity != identity_) {
    has_others_ = true;
    slot.is_damaged = false;
    return true;
  }
  if (header.bytes > storage_.slot_bytes || bytes_needed(header.bytes) > storage_.slot_bytes) return true;
  if (!linked::learning || (header.tag & confirmed_bit) != 0) {
    slot.is_confirmed = true;
  } else if (!read_marks(index)) {
    return false;
  }
  const Payload payload = find_payload(index);
  slot.is_valid = payload == Payload::whole;
  slot.is_damaged = !slot.is_valid;
  slot.is_unread = slot.is_confirmed && payload == Payload::unread;
  return true;
}

// A mark counts where one of its words is whole: a flipped bit must not take it back, and a power cut leaves one word
// only where the mark was asked for. A boot counts where anything was written: a cut must not give one more.
bool StateSlots::read_marks(int32_t index) {
  Slot& slot = slots_[index];
  uint32_t marks[first_boot + state_trials][state_write_bytes / sizeof(uint32_t)];
  if (!read(index, marks_at, marks, sizeof marks)) return false;
  const auto is_set = [&](Mark mark) { return marks[mark][0] == mark_word || marks[mark][1] == ~mark_word; };
  slot.is_confirmed = is_set(confirmed);
  slot.is_rejected = is_set(rejected);
  // In order: where a bit has flipped behind them, the next boots are still to be written.
  while (slot.boots < state_trials && !is_erased(marks[first_boot + slot.boots], 2 * sizeof(uint32_t))) ++slot.boots;
  return true;
}

StateSlots::Payload StateSlots::find_payload(int32_t index) const {
  const StateHeader& header = slots_[index].header;
  uint8_t piece[state_write_bytes];
  uint32_t crc = 0;
  for (size_t done = 0; done < header.bytes; done += sizeof piece) {
    const size_t left = header.bytes - done, count = left < sizeof piece ? left : sizeof piece;
    if (!read(index, bytes_before_state + done, piece, count)) return Payload::unread;
    crc = crc32(piece, count, crc);
  }
  return crc == header.payload_crc32 ? Payload::whole : Payload::damaged;
}

// The storage may have been damaged since the header was read or written.
bool StateSlots::has_header(int32_t index) const {
  const uint32_t crc = slots_[index].header.header_crc32;
  StateHeader header;
  return read(index, 0, &header, sizeof header) && header.header_crc32 == crc && checksum(header) == crc;
}

// The slot of the newest state that is confirmed, or on trial after `most_boots` at most; -1: none. A state that cannot
// be read is none, as one that is damaged: the other may be whole.
int32_t StateSlots::newest(bool on_trial, int32_t most_boots) const {
  int32_t found = -1;
  for (int32_t i = 0; i < 2; ++i) {
    const Slot& slot = slots_[i];
    if (!slot.is_valid || slot.is_rejected || slot.is_confirmed == on_trial) continue;
    if (on_trial && slot.boots > most_boots) continue;
    if (found < 0 || slot.header.generation > slots_[found].header.generation) found = i;
  }
  return found;
}

Status StateSlots::boot(bool is_reset) {
  for (int32_t i = 0; i < 2; ++i) {
    if (!read_slot(i)) return failed(i);
  }
  const int32_t most_boots = is_reset ? state_trials - 1 : state_trials;
  const int32_t trial = linked::learning ? newest(true, most_boots) : -1, known = newest(false);
  // A trial older than what is confirmed was left behind.
  const bool tries = trial >= 0 && ((known < 0 && !slots_[1 - trial].is_unread) ||
                                    slots_[trial].header.generation > slots_[1 - trial].header.generation);
  current_ = tries ? trial : known;
  // Where its boots cannot be counted, a state on trial would never be given up.
  const bool counts = linked::learning && is_reset && tries;
  if (counts && !set_mark(first_boot + slots_[trial].boots)) current_ = known;
  return {};
}

bool StateSlots::has_damaged() const { return slots_[0].is_damaged || slots_[1].is_damaged; }

bool StateSlots::never_written() const {
  return (slots_[0].is_blank || slots_[1].is_blank) && !slots_[0].is_whole && !slots_[1].is_whole;
}

Status StateSlots::load(const StateParts& parts) const {
  if (parts.bytes() != slots_[current_].header.bytes) return {Code::state_size};
  size_t at = bytes_before_state;
  uint32_t crc = 0;
  bool is_read = !linked::learning || has_header(current_);  // else it follows boot()
  for (int32_t i = 0; is_read && parts[i].bytes != nullptr; ++i) {
    const StatePart part = parts[i];
    is_read = read(current_, at, part.bytes, part.count);
    crc = crc32(part.bytes, part.count, crc);
    at += part.count;
  }
  return is_read && crc == slots_[current_].header.payload_crc32 ? Status{} : failed(current_);
}

Status StateSlots::write(const StateParts& parts, uint32_t tag, bool on_trial) {
  const size_t bytes = parts.bytes();
  if (bytes_needed(bytes) > storage_.slot_bytes) return {Code::state_size};
  const int32_t known = newest(false);
  const int32_t index = known == 0 || (known < 0 && slots_[0].is_unread) ? 1 : 0;
  if (linked::learning && slots_[index].is_unread) return failed(index);  // else states are written again and again
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
  if (!written || !payload.flush()) return failed(index);
  header.header_crc32 = checksum(header);
  if (!storage_.write(storage_.context, index, 0, &header, sizeof header)) return failed(index);
  slot.is_whole = slot.is_valid = true;
  slot.is_confirmed = !on_trial;
  current_ = index;
  return {};
}

__attribute__((noinline)) bool StateSlots::set_mark(int32_t mark) {
  alignas(8) uint32_t words[state_write_bytes / sizeof(uint32_t)] = {mark_word, ~mark_word};
  const size_t at = marks_at + static_cast<size_t>(mark) * state_write_bytes;
  return storage_.write(storage_.context, current_, at, words, sizeof words);
}

Status StateSlots::confirm() {
  Slot& slot = slots_[current_];
  // A rejection that failed may be on the storage all the same, where it would win.
  const bool is_there = !slot.is_rejected && has_header(current_) && find_payload(current_) == Payload::whole;
  if (!is_there || !set_mark(confirmed)) return failed(current_);
  slot.is_confirmed = true;
  return {};
}

Status StateSlots::roll_back() {
  slots_[current_].is_rejected = true;
  if (!set_mark(rejected)) return failed(current_);
  current_ = newest(false);
  return {};
}

}  // namespace pmt
