// A card that takes its time: the watchdog is fed in between, and blocks are written together.
#include <doctest/doctest.h>

#include "common/slots.hpp"
#include "tests/card/counting_run.hpp"

using namespace pmt;
using namespace pmt::firmware;
using namespace pmt::tests;

namespace {

constexpr uint32_t payload_blocks = 964;  // all layers of MCUNet
constexpr uint32_t watchdog_milliseconds = 22'000;

CheckpointPart whole(const void* context, int32_t) {
  auto* bytes = static_cast<std::vector<uint8_t>*>(const_cast<void*>(context));
  return {bytes->data(), bytes->size()};
}

// Saves a checkpoint of some blocks to a new card, with room for a few at once.
void save(size_t room, uint32_t block_milliseconds) {
  SimulatedCard& card = SimulatedCard::instance();
  card.reset(2 * (payload_blocks + 1));
  Storage storage;
  REQUIRE(storage.open());
  std::vector<uint8_t> state(payload_blocks * payload_bytes, 7);
  std::vector<Block> memory(room);
  Slots slots;
  slots.open(&storage, 0, payload_blocks + 1, 1);
  slots.use(memory.data(), room * sizeof(Block));
  card.block_milliseconds = block_milliseconds;
  REQUIRE(slots.save({&state, 1, whole}, 1, 0));
  REQUIRE(slots.find());
  CHECK(slots.newest().bytes == state.size());
  state.assign(state.size(), 0);
  REQUIRE(slots.load({&state, 1, whole}));
  CHECK(state == std::vector<uint8_t>(state.size(), 7));
}

}  // namespace

TEST_CASE("no checkpoint keeps the watchdog waiting: a card of 25 ms a block") {
  const SimulatedCard& card = SimulatedCard::instance();
  save(40, 25);
  CHECK(card.longest_unfed == 16 * 25);
  CHECK(card.write_transfers == 61 + 1);
  CHECK(card.writes == payload_blocks + 1);
}

TEST_CASE("no checkpoint keeps the watchdog waiting: the slowest card that there may be") {
  save(40, 500);
  CHECK(SimulatedCard::instance().longest_unfed == 8000);
  CHECK(SimulatedCard::instance().longest_unfed < watchdog_milliseconds / 2);
}

TEST_CASE("without memory to put them together in, blocks are written one by one") {
  save(0, 25);
  CHECK(SimulatedCard::instance().longest_unfed == 25);
  CHECK(SimulatedCard::instance().write_transfers == payload_blocks + 1);
}

TEST_CASE("which of several blocks cannot be written is told") {
  CountingRun::format();
  SimulatedCard& card = SimulatedCard::instance();
  CountingRun run(16);
  REQUIRE(run.start());
  SUBCASE("as far as the card tells") {
    card.inject(TransferFault::bad_transfer, -1);
    CHECK(!run.run_to(1));
    Line line;
    run.storage().fault().describe(line);
    line.print();
    CHECK(card.log == "blocks 1 to 4 cannot be written: the checksum of the transfer is wrong (4 tries)\n");
  }
  SUBCASE("the one that reads back as another") {
    card.inject(TransferFault::short_write, -1);
    CHECK(!run.run_to(1));
    Line line;
    run.storage().fault().describe(line);
    line.print();
    CHECK(card.log == "block 4 cannot be written: it does not hold what it should (4 tries)\n");
  }
}
