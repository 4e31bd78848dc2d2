// Power cuts and faults of the card lose no good checkpoint.
#include <doctest/doctest.h>

#include "tests/card/counting_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

const std::vector<Torn> all_torn = {Torn::old_block, Torn::new_block, Torn::first_part, Torn::noise};
constexpr int64_t writes_of_save = 5;  // four blocks of payload, then the header

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
        CountingRun::format();
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
  CountingRun::format();
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
  CountingRun::format();
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
      CHECK(run.storage().fault().tries == firmware::most_tries);
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
    CountingRun::format();
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
    CountingRun::format();
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
  CountingRun::format();
  CountingRun run;
  REQUIRE(run.start());
  REQUIRE(run.run_to(3));
  SimulatedCard& card = SimulatedCard::instance();
  for (const uint32_t slot : {0u, counting_slot_blocks}) card.bytes[512 * (slot + 2)] ^= 1;
  CountingRun next;
  CHECK(!next.start());
  CHECK(std::string(next.slots().problem()) == "both checkpoints on the card are damaged: write card.img to it again");
}

TEST_CASE("a card that is absent, full or protected is reported, after few tries, and keeps its checkpoint") {
  CountingRun::format();
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
