// States in two slots: trials, confirmation, going back, and the power that goes at any write.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/learner/state_slots.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_bottlenecks.hpp"

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
    for (size_t i = 0; i < count && spend(1); ++i) {
      CHECK((bytes[at + i] == 0xFF || bytes[at + i] == from[i] || is_torn(bytes, at, count)));
      bytes[at + i] = from[i];
    }
    if (left == 0) return false;
    return !fails;
  }
  // What a cut has left of a write: its bytes, then ones.
  static bool is_torn(const Bytes& bytes, size_t at, size_t count) {
    return std::find(bytes.begin() + at, bytes.begin() + at + count, 0xFF) != bytes.begin() + at + count;
  }
  bool spend(int64_t bytes) {
    left = std::max<int64_t>(0, left - bytes);
    return left > 0;
  }

  Bytes slots[2];
  int64_t left = INT64_MAX;
  bool fails = false;
};

// Parameters in memory of their own.
struct Device {
  explicit Device(const Model& of) : model(of) {
    Arena measure;
    parameters.take(model, 1, {}, measure);
    memory = AlignedBytes(measure.used());
    Arena arena(memory.data(), memory.size());
    parameters.take(model, 1, {}, arena);
  }
  void fill(uint8_t value, LearnerState state) {
    for (int32_t i = 0;; ++i) {
      const StatePart part = parameters.part(model, state, i);
      if (part.bytes == nullptr) return;
      std::memset(part.bytes, value, part.count);
    }
  }
  // The one value that all bytes of a state have; -1 where they differ.
  int value(LearnerState state) const {
    int found = -2;
    for (int32_t i = 0;; ++i) {
      const StatePart part = parameters.part(model, state, i);
      if (part.bytes == nullptr) return found;
      for (size_t k = 0; k < part.count; ++k) {
        if (found == -2) found = part.bytes[k];
        if (found != part.bytes[k]) return -1;
      }
    }
  }

  const Model& model;
  AlignedBytes memory{0};
  LearnerParameters parameters;
};

struct Case {
  explicit Case(uint64_t seed) : random(seed), image(random_bottlenecks(random, 2)), model(opened(image)) {
    for (const LearnerState state : {LearnerState::aligned, LearnerState::head, LearnerState::head_alone}) {
      Device device(model);
      largest = std::max(largest, device.parameters.bytes(model, state));
    }
  }

  RandomSource random;
  AlignedBytes image;
  Model model;
  size_t largest = 0;
};

constexpr uint32_t model_crc = 0x1234;

// What a device finds after a reset.
struct Boot {
  Boot(Case& of, Flash& flash, Device& device) {
    slots.open(flash.storage(), of.model, model_crc);
    status = slots.boot(&state, &on_trial);
    if (!status.ok() || state == LearnerState::original) return;
    REQUIRE(slots.load(device.parameters).ok());
    value = device.value(state);
  }

  StateSlots slots;
  Status status;
  LearnerState state = LearnerState::original;
  bool on_trial = false;
  int value = -2;
};

}  // namespace

TEST_CASE("a state is on trial until it is confirmed, and given up after three boots") {
  Case c(1);
  Flash flash(StateSlots::bytes_needed(c.largest));
  Device device(c.model);
  Boot first(c, flash, device);
  CHECK(first.state == LearnerState::original);
  device.fill(7, LearnerState::aligned);
  REQUIRE(first.slots.write(device.parameters, LearnerState::aligned).ok());
  for (int32_t i = 0; i < state_trials; ++i) {
    Boot boot(c, flash, device);
    CHECK(boot.state == LearnerState::aligned);
    CHECK(boot.on_trial);
    CHECK(boot.value == 7);
  }
  CHECK(Boot(c, flash, device).state == LearnerState::original);
  device.fill(8, LearnerState::head);
  REQUIRE(first.slots.write(device.parameters, LearnerState::head).ok());
  REQUIRE(first.slots.confirm().ok());
  device.fill(9, LearnerState::head_alone);
  REQUIRE(first.slots.write(device.parameters, LearnerState::head_alone).ok());
  Boot trial(c, flash, device);
  CHECK(trial.value == 9);
  LearnerState back = LearnerState::original;
  REQUIRE(trial.slots.roll_back(&back).ok());
  CHECK(back == LearnerState::head);
  REQUIRE(trial.slots.load(device.parameters).ok());
  CHECK(device.value(back) == 8);
  const Boot after(c, flash, device);
  CHECK(after.value == 8);
  CHECK_FALSE(after.on_trial);
}

TEST_CASE("states of another model, damaged ones and those that do not fit are not loaded") {
  Case c(2);
  Flash flash(StateSlots::bytes_needed(c.largest));
  Device device(c.model);
  Boot first(c, flash, device);
  device.fill(5, LearnerState::head);
  REQUIRE(first.slots.write(device.parameters, LearnerState::head).ok());
  REQUIRE(first.slots.confirm().ok());
  StateSlots other;
  LearnerState state = LearnerState::head;
  bool on_trial = true;
  other.open(flash.storage(), c.model, model_crc + 1);
  REQUIRE(other.boot(&state, &on_trial).ok());
  CHECK(state == LearnerState::original);
  CHECK_FALSE(on_trial);
  flash.slots[0][StateSlots::bytes_needed(0) + 3] ^= 1;
  CHECK(Boot(c, flash, device).state == LearnerState::original);
  flash.fails = true;
  CHECK(Boot(c, flash, device).status.code == Code::state_storage);
  Flash small(StateSlots::bytes_needed(c.largest) - state_write_bytes);
  Boot tight(c, small, device);
  CHECK(tight.slots.write(device.parameters, LearnerState::head).code == Code::state_size);
}

TEST_CASE("a thousand power cuts lose no confirmed state") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Case c(10 + seed);
    Flash flash(StateSlots::bytes_needed(c.largest));
    Device device(c.model);
    int confirmed = -2;  // the value of the state that must be there; -2: the image
    uint8_t next = 1;
    int32_t new_ones = 0;
    for (int32_t round = 0; round < 250; ++round) {
      flash.left = INT64_MAX;
      Boot boot(c, flash, device);
      REQUIRE(boot.status.ok());
      if (!boot.on_trial) CHECK(boot.value == confirmed);
      const auto state = static_cast<LearnerState>(c.random.integer(1, 3));
      next = static_cast<uint8_t>(next % 250 + 1);
      device.fill(next, state);
      // The power goes at any byte that these write, marks included.
      const auto all = static_cast<int32_t>(2 * flash.slots[0].size());
      flash.left = c.random.integer(0, 3) == 0 ? c.random.integer(1, 4 * state_write_bytes) : c.random.integer(1, all);
      LearnerState back = LearnerState::original;
      const bool was_confirmed = boot.on_trial && boot.slots.confirm().ok();
      if (was_confirmed) confirmed = boot.value;
      const bool written = boot.slots.write(device.parameters, state).ok();
      const bool kept = written && c.random.integer(0, 1) == 0 && boot.slots.confirm().ok();
      if (kept) confirmed = next;
      if (written && !kept && c.random.integer(0, 1) == 0) (void)boot.slots.roll_back(&back);
      // Whether the last mark reached the memory is not known where the power went during it.
      flash.left = INT64_MAX;
      Boot after(c, flash, device);
      REQUIRE(after.status.ok());
      const bool is_new = after.value == next, is_trial_of_before = boot.on_trial && after.value == boot.value;
      CHECK((after.value == confirmed || is_new || is_trial_of_before));
      if (kept) CHECK(is_new);
      if (!after.on_trial) confirmed = after.value;
      new_ones += is_new ? 1 : 0;
    }
    CHECK(new_ones > 20);
  }
}
