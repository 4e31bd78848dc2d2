// States on a card: power cuts and faults lose none, and a card may take its time.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "common/card_slots.hpp"
#include "tests/card/simulated_card.hpp"

using namespace pmt;
using namespace pmt::firmware;
using namespace pmt::tests;

namespace {

constexpr uint32_t slot_blocks = 6;

// A card of two slots that were never written.
void format(uint32_t blocks = slot_blocks) {
  SimulatedCard::instance().reset(2 * blocks);
  Storage storage;
  for (const uint32_t first : {0u, blocks}) {
    Block block = {};
    storage.write(first, &block, 1);
  }
}

// A training stand-in whose state says what it should be: the state after n steps is a function of n. Three parts, one
// of them empty: 4 blocks of payload, the last one partly used.
class CountingRun {
 public:
  // `blocks_at_once`: what the slots get to put blocks together in.
  explicit CountingRun(size_t blocks_at_once = 3)
      : memory_(blocks_at_once), parts_{std::vector<uint8_t>(700), {}, std::vector<uint8_t>(1001)} {
    for (std::vector<uint8_t>& part : parts_) part.reserve(1);  // an empty part is no end
    set(0);
  }

  // From reset to the last state. False where the card fails.
  bool start() {
    if (!storage_.open()) return false;
    places_.open(&storage_, 0, slot_blocks, memory_.data(), memory_.size() * sizeof(Block));
    slots_.open(places_.storage(), 0x1234abcd);
    if (!slots_.boot().ok()) return false;
    if (!slots_.has_state()) return slots_.never_written();
    if (!slots_.load(parts()).ok()) return false;
    steps_ = safe_steps_ = slots_.tag();
    return true;
  }
  // With a state kept after every `interval` steps.
  bool run_to(uint32_t steps, uint32_t interval = 1) {
    while (steps_ < steps) {
      set(steps_ + interval);
      if (!slots_.write(parts(), steps_, false).ok()) return false;
      safe_steps_ = steps_;
    }
    return true;
  }

  uint32_t steps() const { return steps_; }
  // The steps of the last state that the slots said is safe.
  uint32_t safe_steps() const { return safe_steps_; }
  bool is_consistent() const {
    for (size_t p = 0; p < 3; ++p) {
      for (size_t i = 0; i < parts_[p].size(); ++i) {
        if (parts_[p][i] != value(steps_, p, i)) return false;
      }
    }
    return true;
  }
  const Storage& storage() const { return storage_; }

 private:
  static uint8_t value(uint32_t steps, size_t part, size_t index) {
    return static_cast<uint8_t>(steps * 37 + part * 11 + index * 7 + (index >> 8) * steps);
  }
  static StatePart part(const void* context, int32_t index) {
    if (index == 3) return {nullptr, 0};
    const std::vector<uint8_t>& bytes = static_cast<const CountingRun*>(context)->parts_[index];
    return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  }
  StateParts parts() const { return {this, part}; }
  void set(uint32_t steps) {
    steps_ = steps;
    for (size_t p = 0; p < 3; ++p) {
      for (size_t i = 0; i < parts_[p].size(); ++i) parts_[p][i] = value(steps, p, i);
    }
  }

  std::vector<Block> memory_;
  std::vector<uint8_t> parts_[3];
  uint32_t steps_ = 0, safe_steps_ = 0;
  Storage storage_;
  CardSlots places_;
  StateSlots slots_;
};

constexpr int64_t writes_of_save = 6;  // the header is erased, then four blocks of payload, then the header

// After whatever happened the board finds the last checkpoint that was safe, or the one whose header
// was under way and arrived whole.
void check_resumes(uint32_t safe_steps) {
  SimulatedCard::instance().power_on();
  CountingRun run;
  REQUIRE(run.start());
  CHECK(run.is_consistent());
  CHECK(run.steps() >= safe_steps);
  CHECK(run.steps() <= safe_steps + 1);
}

}  // namespace

TEST_CASE("a cut at any write of any checkpoint leaves the last one, or the new one whole") {
  RandomSource random(7);
  for (const Torn torn : all_torn) {
    for (uint32_t done = 0; done < 4; ++done) {
      for (int64_t write = 0; write < writes_of_save; ++write) {
        CAPTURE(done);
        CAPTURE(write);
        format();
        CountingRun run;
        REQUIRE(run.start());
        REQUIRE(run.run_to(done));
        SimulatedCard::instance().cut_power(write, torn, &random);
        CHECK_THROWS_AS(run.run_to(done + 1), PowerCut);
        const bool arrived = torn == Torn::new_block && write == writes_of_save - 1;
        SimulatedCard::instance().power_on();
        CountingRun next;
        REQUIRE(next.start());
        CHECK(next.steps() == (arrived ? done + 1 : done));
        CHECK(next.is_consistent());
        REQUIRE(next.run_to(done + 3));
        check_resumes(done + 3);
      }
    }
  }
}

TEST_CASE("a thousand power cuts in one training lose no checkpoint") {
  constexpr int32_t most_cuts = 1000;
  RandomSource random(8);
  format();
  SimulatedCard& card = SimulatedCard::instance();
  uint32_t safe = 0;
  uint32_t furthest = 0;
  for (int32_t cuts = 0; cuts < most_cuts; ++cuts) {
    card.power_on();
    CountingRun run;
    REQUIRE(run.start());
    REQUIRE(run.is_consistent());
    REQUIRE(run.steps() >= safe);
    REQUIRE(run.steps() <= safe + 1);
    card.cut_power(random.integer(0, 3 * writes_of_save), random.pick(all_torn), &random);
    REQUIRE_THROWS_AS(run.run_to(100000), PowerCut);
    safe = run.safe_steps();
    furthest = safe > furthest ? safe : furthest;
  }
  CHECK(furthest == safe);  // it never went back
  CHECK(safe > 1000);
  check_resumes(safe);
}

TEST_CASE("a thousand faults of the card lose no checkpoint, and most are got over") {
  constexpr int32_t faults = 1000;
  const std::vector<TransferFault> kinds = {TransferFault::bad_transfer, TransferFault::no_response,
                                            TransferFault::lost_write, TransferFault::short_write,
                                            TransferFault::flipped_read};
  RandomSource random(9);
  format();
  SimulatedCard& card = SimulatedCard::instance();
  uint32_t safe = 0;
  int32_t stopped = 0;
  for (int32_t i = 0; i < faults; ++i) {
    CAPTURE(i);
    card.power_on();
    CountingRun run;
    REQUIRE(run.start());
    REQUIRE(run.is_consistent());
    REQUIRE(run.steps() >= safe);
    REQUIRE(run.run_to(run.steps() + static_cast<uint32_t>(random.integer(0, 2))));
    const bool stuck = random.chance(4);
    card.inject(random.pick(kinds), stuck ? -1 : random.integer(1, 3));
    const bool done = run.run_to(run.steps() + 2);
    CHECK(done != stuck);
    if (!done) {
      ++stopped;
      CHECK(run.storage().fault().tries == most_tries);
    }
    safe = run.safe_steps();
  }
  check_resumes(safe);
  CHECK(stopped > 200);
  CHECK(stopped < 300);
}

TEST_CASE("a checkpoint that is corrupted on the card is replaced from the one before") {
  RandomSource random(10);
  for (int32_t round = 0; round < 50; ++round) {
    format();
    SimulatedCard& card = SimulatedCard::instance();
    CountingRun run;
    REQUIRE(run.start());
    REQUIRE(run.run_to(5));                                                   // in slot 0; 4 in slot 1
    card.bytes[static_cast<size_t>(random.integer(0, 512 * 5 - 1))] ^= 0x40;  // of the slot or its header
    CountingRun next;
    REQUIRE(next.start());
    CHECK(next.steps() == 4);
    CHECK(next.is_consistent());
    card.cut_power(random.integer(0, 4), random.pick(all_torn), &random);
    CHECK_THROWS_AS(next.run_to(5), PowerCut);
    check_resumes(4);
  }
}

TEST_CASE("the rest of a corrupt checkpoint does not pass for a part of the one that replaces it") {
  RandomSource random(11);
  for (int64_t writes = 1; writes < 4; ++writes) {
    format();
    SimulatedCard& card = SimulatedCard::instance();
    CountingRun run;
    REQUIRE(run.start());
    REQUIRE(run.run_to(5));
    card.bytes[512 + 9] ^= 0x40;  // the first block of its payload
    CountingRun next;
    REQUIRE(next.start());
    card.cut_power(writes, Torn::old_block, &random);
    CHECK_THROWS_AS(next.run_to(6, 2), PowerCut);  // the block that was corrupt is good again
    card.power_on();
    CountingRun last;
    REQUIRE(last.start());
    CHECK(last.steps() == 4);
    CHECK(last.is_consistent());
  }
}

TEST_CASE("both checkpoints damaged is no start from the beginning") {
  format();
  CountingRun run;
  REQUIRE(run.start());
  REQUIRE(run.run_to(3));
  SimulatedCard& card = SimulatedCard::instance();
  for (const uint32_t slot : {0u, slot_blocks}) card.bytes[512 * (slot + 2)] ^= 1;
  CountingRun next;
  CHECK(!next.start());
}

TEST_CASE("a card that is absent, full or protected is reported, after few tries, and keeps its checkpoint") {
  format();
  SimulatedCard& card = SimulatedCard::instance();
  CountingRun run;
  REQUIRE(run.start());
  REQUIRE(run.run_to(2));
  const std::vector<uint8_t> good = card.bytes;

  SUBCASE("absent") {
    card.present = false;
    CHECK(!run.run_to(3));
    CHECK(std::string(run.storage().fault().why) == "no card answers");
    CHECK(run.storage().fault().tries == 4);
    CountingRun next;
    CHECK(!next.start());
    CHECK(std::string(next.storage().fault().why) == "no card answers");
  }
  SUBCASE("protected") {
    card.write_protected = true;
    CHECK(!run.run_to(3));
    CHECK(std::string(run.storage().fault().why) == "the card is write-protected");
    CHECK(run.storage().fault().tries == 1);
  }
  SUBCASE("full: it ends before the slot does") {
    card.bytes.resize(512 * 4);
    CHECK(!run.run_to(3));
    CHECK(std::string(run.storage().fault().why) == "it lies beyond the end of the card");
    CHECK(run.storage().fault().tries == 1);
    const int64_t reads = card.reads;
    CHECK(!run.run_to(4));  // nothing is tried any more
    CHECK(card.reads == reads);
  }
  CHECK(run.safe_steps() == 2);
  card.bytes = good;
  check_resumes(2);
}

namespace {

constexpr uint32_t payload_blocks = 964;  // all layers of MCUNet
constexpr uint32_t watchdog_milliseconds = 22'000;

StatePart whole(const void* context, int32_t index) {
  auto* bytes = static_cast<std::vector<uint8_t>*>(const_cast<void*>(context));
  return {index == 0 ? bytes->data() : nullptr, bytes->size()};
}

// Saves a checkpoint of some blocks to a new card, with room for a few at once.
void save(size_t room, uint32_t block_milliseconds) {
  SimulatedCard& card = SimulatedCard::instance();
  format(payload_blocks + 1);
  Storage storage;
  REQUIRE(storage.open());
  std::vector<uint8_t> state(payload_blocks * payload_bytes / state_write_bytes * state_write_bytes, 7);
  std::vector<Block> memory(room);
  CardSlots places;
  places.open(&storage, 0, payload_blocks + 1, memory.data(), room * sizeof(Block));
  StateSlots slots;
  slots.open(places.storage(), 1);
  card.block_milliseconds = block_milliseconds;
  card.writes = card.write_transfers = 0;
  REQUIRE(slots.write({&state, whole}, 1, false).ok());
  state.assign(state.size(), 0);
  slots.open(places.storage(), 1);
  REQUIRE(slots.boot().ok());
  REQUIRE(slots.load({&state, whole}).ok());
  CHECK(state == std::vector<uint8_t>(state.size(), 7));
}

}  // namespace

TEST_CASE("no checkpoint keeps the watchdog waiting: a card of 25 ms a block") {
  const SimulatedCard& card = SimulatedCard::instance();
  save(40, 25);
  CHECK(card.longest_unfed == 16 * 25);
  CHECK(card.write_transfers == 1 + 61 + 1);
  CHECK(card.writes == 1 + payload_blocks + 1);
}

TEST_CASE("no checkpoint keeps the watchdog waiting: the slowest card that there may be") {
  save(40, 500);
  CHECK(SimulatedCard::instance().longest_unfed == 8000);
  CHECK(SimulatedCard::instance().longest_unfed < watchdog_milliseconds / 2);
}

TEST_CASE("without memory to put them together in, blocks are written one by one") {
  save(0, 25);
  CHECK(SimulatedCard::instance().longest_unfed == 25);
  CHECK(SimulatedCard::instance().write_transfers == 1 + payload_blocks + 1);
}

TEST_CASE("which of several blocks cannot be written is told") {
  SimulatedCard& card = SimulatedCard::instance();
  card.reset(8);
  Storage storage;
  REQUIRE(storage.open());
  std::vector<Block> blocks(4);
  const char* told = nullptr;
  SUBCASE("as far as the card tells") {
    card.inject(TransferFault::bad_transfer, -1);
    told = "blocks 1 to 4 cannot be written: the checksum of the transfer is wrong (4 tries)\n";
  }
  SUBCASE("the one that reads back as another") {
    card.inject(TransferFault::short_write, -1);
    told = "block 4 cannot be written: it does not hold what it should (4 tries)\n";
  }
  CHECK(!storage.write(1, blocks.data(), 4));
  Line line;
  storage.fault().describe(line);
  line.print();
  CHECK(card.log == told);
}

TEST_CASE("a program that goes on after a fault finds another card, and no mark makes a damaged header valid") {
  format();
  SimulatedCard& card = SimulatedCard::instance();
  Storage storage;
  CardSlots places;
  REQUIRE(storage.open());
  places.open(&storage, 0, slot_blocks);
  places.forget_faults();
  const StateStorage& states = places.storage();
  const uint8_t mark[state_write_bytes] = {};
  uint8_t found[state_write_bytes];
  REQUIRE(states.erase(states.context, 0));
  REQUIRE(states.write(states.context, 0, 1 * sizeof mark, mark, sizeof mark));
  REQUIRE(states.read(states.context, 1, 0, found, sizeof found));
  card.bytes[3] ^= 0x40;
  CHECK(!states.write(states.context, 0, 2 * sizeof mark, mark, sizeof mark));
  CHECK(!states.write(states.context, 0, 2 * sizeof mark, mark, sizeof mark));
  card.bytes[3] ^= 0x40;
  card.present = false;
  CHECK(!states.write(states.context, 0, 2 * sizeof mark, mark, sizeof mark));
  card.present = true;
  CHECK(states.write(states.context, 0, 2 * sizeof mark, mark, sizeof mark));
}
