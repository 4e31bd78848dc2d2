// States in two slots: trials, confirmation, going back, and the power that goes at any write.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/card/state_slots.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Bytes = std::vector<uint8_t>;

// A flash memory: erased to ones, and written once. After a number of written bytes the power is gone.
struct Flash {
  explicit Flash(size_t slot_bytes) : slots{Bytes(slot_bytes, 0), Bytes(slot_bytes, 0)} {}

  StateStorage storage() {
    return {this, slots[0].size(),
            [](void* context, int32_t slot, size_t at, void* to, size_t count) {
              Flash& flash = *static_cast<Flash*>(context);
              if (flash.fails) return false;
              if (slot == flash.unreadable && at >= flash.unreadable_from) return false;
              REQUIRE(at + count <= flash.slots[slot].size());
              std::memcpy(to, flash.slots[slot].data() + at, count);
              return true;
            },
            [](void* context, int32_t slot, size_t at, const void* from, size_t count) {
              return static_cast<Flash*>(context)->write(slot, at, static_cast<const uint8_t*>(from), count);
            },
            [](void* context, int32_t slot) {
              Flash& flash = *static_cast<Flash*>(context);
              const auto erased = static_cast<size_t>(
                  std::clamp<int64_t>(flash.left, 0, static_cast<int64_t>(flash.slots[slot].size())));
              std::fill_n(flash.slots[slot].begin(), erased, uint8_t{0xFF});
              return flash.spend(static_cast<int64_t>(flash.slots[slot].size()));
            }};
  }
  bool write(int32_t slot, size_t at, const uint8_t* from, size_t count) {
    CHECK(at % state_write_bytes == 0);
    CHECK(count % state_write_bytes == 0);
    Bytes& bytes = slots[slot];
    REQUIRE(at + count <= bytes.size());
    const bool torn = is_torn(bytes, at, count);
    for (size_t i = 0; i < count && spend(1); ++i) {
      CHECK((bytes[at + i] == 0xFF || bytes[at + i] == from[i] || torn));
      bytes[at + i] = from[i];
    }
    if (left == 0) return false;
    return !fails && !protects && static_cast<int64_t>(at) != worn;
  }
  // A write that a cut, or a bit that flipped, has left: its bytes, then ones.
  static bool is_torn(const Bytes& bytes, size_t at, size_t count) {
    return std::find(bytes.begin() + at, bytes.begin() + at + count, 0xFF) != bytes.begin() + at + count;
  }
  bool spend(int64_t bytes) {
    left = std::max<int64_t>(0, left - bytes);
    return left > 0;
  }

  Bytes slots[2];
  int64_t left = INT64_MAX;
  int64_t worn = -1;  // where a write fails
  bool fails = false, protects = false;
  int32_t unreadable = -1;  // the slot whose state is
  size_t unreadable_from = StateSlots::bytes_before_state;
};

constexpr uint32_t identity = 0x1234;
constexpr size_t state_bytes = 333;

// A state of bytes that count on, in two parts.
struct State {
  explicit State(uint8_t value, size_t count = state_bytes) : bytes(count) {
    std::iota(bytes.begin(), bytes.end(), value);
  }

  StateParts parts() {
    return {this, [](const void* context, int32_t index) {
              Bytes& all = const_cast<State*>(static_cast<const State*>(context))->bytes;
              return StatePart{index < 2 ? all.data() + 100 * index : nullptr, index == 0 ? 100 : all.size() - 100};
            }};
  }

  Bytes bytes;
};

// What a device finds after a reset.
struct Boot {
  explicit Boot(Flash& flash, uint32_t of = identity) {
    slots.open(flash.storage(), of);
    status = slots.boot();
    if (status.ok() && slots.has_state()) load();
  }
  void load() {
    State state(0);
    REQUIRE(slots.load(state.parts()).ok());
    value = state.bytes == State(state.bytes[0]).bytes ? state.bytes[0] : -1;
  }

  StateSlots slots;
  Status status;
  int value = -2;  // the state's first byte; -1: the others do not count on, -2: there is none
};

}  // namespace

TEST_CASE("a state is on trial until it is confirmed, and given up after three boots") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot first(flash);
  CHECK_FALSE(first.slots.has_state());
  REQUIRE(first.slots.write(State(7).parts(), 70, true).ok());
  for (int32_t i = 0; i < state_trials; ++i) {
    Boot boot(flash);
    CHECK(boot.slots.tag() == 70);
    CHECK(boot.slots.on_trial());
    CHECK(boot.value == 7);
  }
  CHECK_FALSE(Boot(flash).slots.has_state());
  REQUIRE(first.slots.write(State(8).parts(), 80, true).ok());
  REQUIRE(first.slots.confirm().ok());
  REQUIRE(first.slots.write(State(9).parts(), 90, true).ok());
  Boot trial(flash);
  CHECK(trial.value == 9);
  REQUIRE(trial.slots.roll_back().ok());
  CHECK(trial.slots.tag() == 80);
  trial.load();
  CHECK(trial.value == 8);
  const Boot after(flash);
  CHECK(after.value == 8);
  CHECK_FALSE(after.slots.on_trial());
}

TEST_CASE("a trial that goes on is no boot, and a state that was given up does not come back") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  REQUIRE(Boot(flash).slots.write(State(7).parts(), 70, true).ok());
  const auto goes_on = [&] {
    StateSlots slots;
    slots.open(flash.storage(), identity);
    CHECK(slots.boot(false).ok());
    return slots.has_state() && slots.on_trial();
  };
  for (int32_t i = 0; i < state_trials; ++i) {
    CHECK(Boot(flash).value == 7);
    CHECK(goes_on());
    CHECK(goes_on());
  }
  CHECK_FALSE(Boot(flash).slots.has_state());
}

TEST_CASE("a slot holds a header, marks and a state, in pieces that are written at once") {
  CHECK(StateSlots::bytes_needed(0) == 192);
  CHECK(StateSlots::bytes_needed(32) == 224);
  CHECK(StateSlots::bytes_needed(33) == 256);
  Flash flash(StateSlots::bytes_needed(320));
  Boot writer(flash);
  CHECK(writer.slots.write(State(5, 320).parts(), 1, false).ok());
  CHECK(flash.slots[0][192] == 5);
  CHECK(flash.slots[0][192 + 319] == 68);  // 5 + 319
  CHECK(writer.slots.write(State(5, 290).parts(), 1, false).ok());
  CHECK(flash.slots[1][192 + 289] == 38);
  CHECK(Bytes(flash.slots[1].begin() + 192 + 290, flash.slots[1].end()) == Bytes(30, 0));
}

TEST_CASE("a state of which a piece cannot be written is none") {
  constexpr size_t slot_bytes = 192 + 352;
  for (size_t at = 0; at < slot_bytes; at += at == 0 ? 192 : 32) {
    Flash flash(slot_bytes);
    flash.worn = static_cast<int64_t>(at);
    Boot writer(flash);
    CHECK(writer.slots.write(State(5).parts(), 1, false).code == Code::state_storage);
    CHECK_FALSE(writer.slots.has_state());
    CHECK(flash.slots[0][0] == (at == 0 ? 0x50 : 0xFF));
  }
}

TEST_CASE("a slot that was written to and holds no whole state is damaged") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot first(flash);
  CHECK_FALSE(first.slots.has_damaged());
  REQUIRE(first.slots.write(State(5).parts(), 1, true).ok());
  CHECK_FALSE(Boot(flash).slots.has_damaged());
  REQUIRE(first.slots.roll_back().ok());
  CHECK_FALSE(Boot(flash).slots.has_damaged());
  flash.slots[0][StateSlots::bytes_before_state] ^= 1;
  CHECK(Boot(flash).slots.has_damaged());
  CHECK_FALSE(Boot(flash, identity + 1).slots.has_damaged());
  flash.slots[0][8] ^= 1;  // a header's
  CHECK(Boot(flash, identity + 1).slots.has_damaged());
  flash.slots[0].assign(flash.slots[0].size(), 0xFF);
  CHECK_FALSE(Boot(flash).slots.has_damaged());
}

TEST_CASE("a header of which a part is erased is damaged, and one that is erased is none") {
  Flash good(StateSlots::bytes_needed(state_bytes));
  REQUIRE(Boot(good).slots.write(State(5).parts(), 1, false).ok());
  for (const uint8_t erased : {0x00, 0xFF}) {
    for (size_t count = 1; count <= sizeof(StateHeader); ++count) {
      Flash flash = good;
      std::fill_n(flash.slots[0].begin(), count, erased);
      const Boot boot(flash);
      const bool is_none = count == sizeof(StateHeader);
      CHECK_FALSE(boot.slots.has_state());
      CHECK(boot.slots.has_damaged() == !is_none);
      flash.slots[1].assign(flash.slots[1].size(), 0xFF);
      CHECK(Boot(flash).slots.never_written() == (is_none && erased == 0x00));
      Flash torn = good;
      std::fill(torn.slots[0].begin() + static_cast<int64_t>(count), torn.slots[0].end(), erased);
      CHECK(Boot(torn).slots.has_damaged());
    }
  }
}

TEST_CASE("a state that was damaged meanwhile is not confirmed, and stays on trial") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot writer(flash);
  REQUIRE(writer.slots.write(State(8).parts(), 8, false).ok());
  REQUIRE(writer.slots.write(State(9).parts(), 9, true).ok());
  const size_t state = StateSlots::bytes_before_state;
  for (size_t at = 0; at < state + state_bytes; ++at) {
    const bool is_mark = at >= sizeof(StateHeader) && at < state;
    if (is_mark) continue;
    flash.slots[1][at] ^= 0x10;
    CHECK(writer.slots.confirm().code == Code::state_storage);
    CHECK(writer.slots.on_trial());
    CHECK(Boot(flash).value == 8);
    flash.slots[1][at] ^= 0x10;
  }
  flash.unreadable = 1;
  CHECK(writer.slots.confirm().code == Code::state_storage);
  flash.unreadable = -1;
  REQUIRE(writer.slots.confirm().ok());
  CHECK(Boot(flash).value == 9);
}

TEST_CASE("a trial that was damaged meanwhile is rolled back, and a confirmed state that was is not loaded") {
  for (size_t at = 0; at < sizeof(StateHeader); ++at) {
    Flash flash(StateSlots::bytes_needed(state_bytes));
    Boot writer(flash);
    REQUIRE(writer.slots.write(State(8).parts(), 8, false).ok());
    REQUIRE(writer.slots.write(State(9).parts(), 9, true).ok());
    flash.slots[1][at] ^= 0x10;
    REQUIRE(writer.slots.roll_back().ok());
    writer.load();
    CHECK(writer.value == 8);
    CHECK(Boot(flash).value == 8);
    for (const size_t damaged : {at, StateSlots::bytes_before_state + at}) {
      flash.slots[0][damaged] ^= 0x10;
      CHECK(writer.slots.load(State(0).parts()).code == Code::state_storage);
      flash.slots[0][damaged] ^= 0x10;
    }
  }
}

TEST_CASE("a flipped bit of the storage never takes a confirmed state back unsaid") {
  const size_t slot_bytes = StateSlots::bytes_needed(state_bytes);
  for (const bool has_older : {false, true}) {
    Flash good(slot_bytes);
    Boot writer(good);
    if (has_older) REQUIRE(writer.slots.write(State(4).parts(), 4, false).ok());
    REQUIRE(writer.slots.write(State(5).parts(), 5, true).ok());
    REQUIRE(writer.slots.confirm().ok());
    int32_t told = 0;
    for (size_t bit = 0; bit < 2 * 8 * slot_bytes; ++bit) {
      Flash flash = good;
      flash.slots[bit / 8 / slot_bytes][bit / 8 % slot_bytes] ^= static_cast<uint8_t>(1u << bit % 8);
      const Boot boot(flash);
      REQUIRE(boot.status.ok());
      CHECK_FALSE(boot.slots.on_trial());
      if (boot.value == 5) continue;
      REQUIRE(boot.slots.has_damaged());
      REQUIRE(boot.value == (has_older ? 4 : -2));
      ++told;
    }
    CHECK(told == 8 * (sizeof(StateHeader) + state_bytes));  // no mark is among them
  }
}

TEST_CASE("a flipped bit confirms no state, and gives it no more boots") {
  Flash good(StateSlots::bytes_needed(state_bytes));
  Boot writer(good);
  REQUIRE(writer.slots.write(State(4).parts(), 4, false).ok());
  REQUIRE(writer.slots.write(State(5).parts(), 5, true).ok());
  int32_t fewer = 0;
  for (size_t bit = 0; bit < 8 * good.slots[1].size(); ++bit) {
    Flash flash = good;
    flash.slots[1][bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    int32_t boots = 0;
    while (Boot(flash).value == 5) REQUIRE(++boots <= state_trials);
    CHECK(Boot(flash).value == 4);
    if (boots == 0) REQUIRE(Boot(flash).slots.has_damaged());
    if (boots == state_trials - 1) ++fewer;
    CHECK((boots == 0 || boots >= state_trials - 1));
  }
  CHECK(fewer == state_trials * 64);  // the two words of each mark
}

TEST_CASE("an older state whose mark is damaged does not come back on trial") {
  for (const int32_t states : {2, 3}) {
    Flash flash(StateSlots::bytes_needed(state_bytes));
    Boot writer(flash);
    for (int32_t i = 1; i <= states; ++i) {
      REQUIRE(writer.slots.write(State(static_cast<uint8_t>(i)).parts(), 1, true).ok());
      REQUIRE(writer.slots.confirm().ok());
    }
    std::fill_n(flash.slots[states % 2].begin() + sizeof(StateHeader), state_write_bytes, uint8_t{0xFF});
    const Boot boot(flash);
    CHECK(boot.value == states);
    CHECK_FALSE(boot.slots.on_trial());
  }
}

TEST_CASE("a mark that a power cut has torn counts from its first word on, and can be written again") {
  for (int64_t written = 0; written <= static_cast<int64_t>(state_write_bytes); ++written) {
    Flash flash(StateSlots::bytes_needed(state_bytes));
    Boot writer(flash);
    REQUIRE(writer.slots.write(State(8).parts(), 8, false).ok());
    REQUIRE(writer.slots.write(State(9).parts(), 9, true).ok());
    flash.left = written + 1;
    CHECK(writer.slots.confirm().ok() == (written == static_cast<int64_t>(state_write_bytes)));
    flash.left = INT64_MAX;
    Boot boot(flash);
    CHECK(boot.value == 9);
    CHECK(boot.slots.on_trial() == (written < 4));
    REQUIRE(boot.slots.confirm().ok());
    CHECK_FALSE(Boot(flash).slots.on_trial());
  }
}

TEST_CASE("states that need no trial take turns, and their generations count") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  CHECK(Boot(flash).slots.never_written());
  for (uint32_t i = 1; i < 6; ++i) {
    REQUIRE(Boot(flash).slots.write(State(static_cast<uint8_t>(i)).parts(), i, false).ok());
    const Boot boot(flash);
    CHECK(boot.value == static_cast<int>(i));
    CHECK(boot.slots.generation() == i);
    CHECK_FALSE(boot.slots.on_trial());
    CHECK_FALSE(boot.slots.never_written());
  }
  const size_t state = StateSlots::bytes_before_state;
  flash.slots[0][state] ^= 1;  // of the newest
  CHECK(Boot(flash).value == 4);
  flash.slots[1][state] ^= 1;
  const Boot damaged(flash);
  CHECK_FALSE(damaged.slots.has_state());
  CHECK_FALSE(damaged.slots.never_written());
}

TEST_CASE("states of another identity, damaged ones and those that do not fit are not loaded") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot first(flash);
  REQUIRE(first.slots.write(State(5).parts(), 1, true).ok());
  REQUIRE(first.slots.confirm().ok());
  const Boot other(flash, identity + 1);
  CHECK(other.status.ok());
  CHECK(other.slots.has_others());
  CHECK_FALSE(other.slots.has_state());
  CHECK_FALSE(Boot(flash).slots.has_others());
  CHECK(first.slots.load(State(0, state_bytes - 1).parts()).code == Code::state_size);
  flash.slots[0][StateSlots::bytes_needed(0) + 3] ^= 1;
  CHECK_FALSE(Boot(flash).slots.has_state());
  flash.fails = true;
  CHECK(Boot(flash).status.code == Code::state_storage);
  first.slots.open(flash.storage(), identity);
  CHECK_FALSE(first.slots.has_state());
  Flash small(StateSlots::bytes_needed(state_bytes) - state_write_bytes);
  CHECK(Boot(small).slots.write(State(5).parts(), 1, true).code == Code::state_size);
}

TEST_CASE("a state that would not fit its slot is none, and marks that cannot be read fail the boot") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  REQUIRE(Boot(flash).slots.write(State(5).parts(), 1, true).ok());
  flash.unreadable = 0;
  flash.unreadable_from = sizeof(StateHeader);
  CHECK(Boot(flash).status.code == Code::state_storage);
  flash.unreadable = -1;
  for (const uint32_t bytes : {353u, 544u, 545u, 0xFFFFFFFFu}) {  // of 352 that fit, 544 of the slot
    StateHeader header = {};
    std::memcpy(&header, flash.slots[0].data(), sizeof header);
    header.bytes = bytes;
    header.header_crc32 = StateSlots::checksum(header);
    std::memcpy(flash.slots[0].data(), &header, sizeof header);
    const Boot boot(flash);
    CHECK(boot.status.ok());
    CHECK_FALSE(boot.slots.has_state());
    CHECK(boot.slots.has_damaged());
  }
}

TEST_CASE("a state that cannot be read, or whose trials cannot be counted, leaves the other in force") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot first(flash);
  for (const uint8_t value : {5, 6}) REQUIRE(first.slots.write(State(value).parts(), value, false).ok());
  flash.unreadable = 0;
  CHECK(Boot(flash).value == 6);
  flash.unreadable = 1;
  CHECK(Boot(flash).value == 5);
  flash.unreadable = -1;
  REQUIRE(first.slots.write(State(7).parts(), 7, true).ok());
  flash.protects = true;
  const Boot uncounted(flash);
  CHECK(uncounted.value == 6);
  CHECK_FALSE(uncounted.slots.on_trial());
  flash.protects = false;
  CHECK(Boot(flash).value == 7);
}

TEST_CASE("a confirmed state that could not be read is not written over") {
  for (const int32_t other : {0, 1}) {  // states in the other slot
    Flash flash(StateSlots::bytes_needed(state_bytes));
    Boot first(flash);
    for (int32_t i = 0; i <= other; ++i) REQUIRE(first.slots.write(State(5 + i).parts(), 1, false).ok());
    flash.unreadable = other;
    Boot second(flash);
    flash.unreadable = -1;
    CHECK(second.status.ok());
    CHECK(second.slots.has_damaged());
    CHECK(second.slots.write(State(9).parts(), 1, true).code == (other == 0 ? Code::ok : Code::state_storage));
    if (other == 0) REQUIRE(second.slots.roll_back().ok());
    CHECK(Boot(flash).value == 5 + other);
  }
}

TEST_CASE("a state on trial that could not be read is written over") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot first(flash);
  REQUIRE(first.slots.write(State(5).parts(), 1, false).ok());
  REQUIRE(first.slots.write(State(6).parts(), 1, true).ok());
  flash.unreadable = 1;
  Boot second(flash);
  flash.unreadable = -1;
  CHECK(second.value == 5);
  CHECK(second.slots.write(State(7).parts(), 1, true).ok());
  CHECK(Boot(flash).value == 7);
}

TEST_CASE("a rejection that failed is not followed by a confirmation") {
  Flash flash(StateSlots::bytes_needed(state_bytes));
  Boot first(flash);
  REQUIRE(first.slots.write(State(8).parts(), 80, false).ok());
  REQUIRE(first.slots.write(State(9).parts(), 90, true).ok());
  flash.protects = true;  // the mark is written, and the storage says that it is not
  CHECK(first.slots.roll_back().code == Code::state_storage);
  flash.protects = false;
  CHECK(first.slots.confirm().code == Code::state_storage);
  CHECK(first.slots.on_trial());
  CHECK(Boot(flash).value == 8);
  REQUIRE(first.slots.roll_back().ok());
  CHECK(first.slots.tag() == 80);
  CHECK_FALSE(first.slots.on_trial());
  CHECK(Boot(flash).value == 8);
}

TEST_CASE("a thousand power cuts lose no confirmed state") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    RandomSource random(10 + seed);
    Flash flash(StateSlots::bytes_needed(state_bytes));
    int confirmed = -2;  // the value of the state that must be there; -2: the image
    uint8_t next = 1;
    int32_t new_ones = 0;
    for (int32_t round = 0; round < 250; ++round) {
      flash.left = INT64_MAX;
      // Now and then a state cannot be read, for this boot.
      flash.unreadable = random.integer(0, 3) == 0 ? random.integer(0, 1) : -1;
      flash.unreadable_from = StateSlots::bytes_before_state;
      const bool is_unread = flash.unreadable >= 0;
      Boot boot(flash);
      REQUIRE(boot.status.ok());
      flash.unreadable = -1;
      const bool was_on_trial = boot.slots.on_trial();
      if (!was_on_trial && !is_unread) CHECK(boot.value == confirmed);
      next = static_cast<uint8_t>(next % 250 + 1);
      // The power goes at any byte that these write, marks included.
      const auto all = static_cast<int32_t>(3 * flash.slots[0].size());
      flash.left = random.integer(0, 3) == 0 ? random.integer(1, 4 * state_write_bytes) : random.integer(1, all);
      if (was_on_trial && boot.slots.confirm().ok()) confirmed = boot.value;
      const bool written = boot.slots.write(State(next).parts(), 1, true).ok();
      const bool kept = written && random.integer(0, 1) == 0 && boot.slots.confirm().ok();
      if (kept) confirmed = next;
      if (written && !kept && random.integer(0, 1) == 0) (void)boot.slots.roll_back();
      // Whether the last mark reached the memory is not known where the power went during it.
      flash.left = INT64_MAX;
      const Boot after(flash);
      REQUIRE(after.status.ok());
      const bool is_new = after.value == next, is_trial_of_before = was_on_trial && after.value == boot.value;
      const bool is_trial_unread = is_unread && after.slots.on_trial();
      CHECK((after.value == confirmed || is_new || is_trial_of_before || is_trial_unread));
      if (kept) CHECK(is_new);
      if (!after.slots.on_trial()) confirmed = after.value;
      new_ones += is_new ? 1 : 0;
    }
    CHECK(new_ones > 20);
  }
}
