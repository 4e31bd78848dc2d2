// The SDMMC driver against models of controller and card, of both generations.
#include <doctest/doctest.h>

#include <vector>

#include "sdmmc_model.hpp"

using pmt::board::CardStatus;
using pmt::stm32::Sdmmc;
using pmt::stm32::SdmmcGeneration;
using pmt::test::CardModel;
using pmt::test::SdmmcModel;
using pmt::test::SimulatedBus;

namespace {

constexpr Sdmmc::Setup f7 = {0x40012C00, 48'000'000, SdmmcGeneration::f7};
constexpr Sdmmc::Setup h7 = {0x52007000, 46'666'666, SdmmcGeneration::h7};

// A card of 2048 blocks at a controller.
struct Slot {
  explicit Slot(const Sdmmc::Setup& setup, bool version2 = true, bool high_capacity = true)
      : card(version2, high_capacity, 2048), controller(setup, &card), driver(setup) {
    bus.attach(setup.base, 0x100, &controller);
  }
  CardStatus open() { return driver.open(&blocks); }

  SimulatedBus bus;
  CardModel card;
  SdmmcModel controller;
  Sdmmc driver;
  uint32_t blocks = 1;
};

std::vector<uint32_t> numbered(uint32_t blocks) {
  std::vector<uint32_t> words(blocks * 128);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = 0x9E3779B9u * (i + 1);
  return words;
}

}  // namespace

TEST_CASE("a card of version 2 is identified, on four lines at full speed") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    REQUIRE(slot.open() == CardStatus::ok);
    CHECK(slot.blocks == 2048);
    CHECK(slot.card.log == "0 8 55 A41 55 A41 55 A41 2 3 9 7 55 A6 16 ");
    CHECK(slot.card.is_wide());
    CHECK(slot.controller.clock_hz() == setup.kernel_hz / 2);
    CHECK(slot.controller.problems == "");
  }
}

TEST_CASE("a card of version 1 is addressed by bytes") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup, false, false);
    REQUIRE(slot.open() == CardStatus::ok);
    CHECK(slot.blocks == 2048);
    CHECK(slot.card.log == "0 8 0 55 A41 55 A41 55 A41 2 3 9 7 55 A6 16 ");
    slot.card.block(7)[3] = 99;
    std::vector<uint32_t> words(128);
    REQUIRE(slot.driver.read(7, 1, words.data()) == CardStatus::ok);
    CHECK(words[0] == 99u << 24);
    CHECK(slot.controller.problems == "");
  }
}

TEST_CASE("blocks are written and read back, one and many") {
  for (const auto& setup : {f7, h7}) {
    for (const uint32_t count : {1u, 2u, 17u}) {
      Slot slot(setup);
      REQUIRE(slot.open() == CardStatus::ok);
      const auto written = numbered(count);
      REQUIRE(slot.driver.write(100, count, written.data()) == CardStatus::ok);
      CHECK(slot.card.block(100)[0] == 0xB9);
      CHECK(slot.card.block(99)[0] == 0);
      std::vector<uint32_t> found(written.size());
      slot.card.log.clear();
      REQUIRE(slot.driver.read(100, count, found.data()) == CardStatus::ok);
      CHECK(found == written);
      CHECK(slot.card.log == (count == 1 ? "17 " : "18 12 "));
      CHECK(slot.controller.problems == "");
    }
  }
}

TEST_CASE("the card's last blocks are read although it complains of reading ahead") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    REQUIRE(slot.open() == CardStatus::ok);
    std::vector<uint32_t> words(2 * 128);
    CHECK(slot.driver.read(2046, 2, words.data()) == CardStatus::ok);
  }
}

TEST_CASE("nothing is sent for blocks that the card does not have") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    std::vector<uint32_t> words(2 * 128);
    CHECK(slot.driver.read(0, 1, words.data()) == CardStatus::absent);
    REQUIRE(slot.open() == CardStatus::ok);
    slot.card.log.clear();
    CHECK(slot.driver.read(2047, 2, words.data()) == CardStatus::out_of_range);
    CHECK(slot.driver.write(2048, 1, words.data()) == CardStatus::out_of_range);
    CHECK(slot.driver.read(0xFFFFFFFFu, 2, words.data()) == CardStatus::out_of_range);
    CHECK(slot.driver.read(2048, 0, words.data()) == CardStatus::ok);
    CHECK(slot.card.log == "");
  }
}

TEST_CASE("an absent card, and one that never powers up") {
  for (const auto& setup : {f7, h7}) {
    Slot empty(setup);
    empty.card.faults.absent = true;
    CHECK(empty.open() == CardStatus::absent);
    CHECK(empty.blocks == 0);
  }
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    slot.card.faults.power_up_polls = -1;
    CHECK(slot.open() == CardStatus::timeout);
    CHECK(slot.bus.milliseconds() < 1100);
  }
}

TEST_CASE("a card that falls silent at any command is a timeout, a damaged response a checksum") {
  for (const auto& setup : {f7, h7}) {
    for (const uint32_t command : {2u, 3u, 9u, 7u, 6u, 16u}) {
      Slot silent(setup);
      silent.card.faults.silent_command = command;
      CHECK(silent.open() == CardStatus::timeout);
      CHECK(silent.blocks == 0);
    }
  }
  for (const auto& setup : {f7, h7}) {
    for (const uint32_t command : {8u, 2u, 3u, 9u, 7u, 6u, 16u}) {
      Slot damaged(setup);
      damaged.card.faults.damaged_command = command;
      CHECK(damaged.open() == CardStatus::checksum);
    }
  }
}

TEST_CASE("faults of single blocks are told, and the next transfer works") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    REQUIRE(slot.open() == CardStatus::ok);
    const auto written = numbered(4);
    std::vector<uint32_t> found(written.size());
    auto& faults = slot.card.faults;

    faults.damaged_blocks = {12};
    CHECK(slot.driver.read(10, 4, found.data()) == CardStatus::checksum);
    CHECK(slot.driver.write(10, 4, written.data()) == CardStatus::checksum);
    CHECK(slot.driver.write(12, 1, written.data()) == CardStatus::checksum);
    faults.damaged_blocks.clear();
    faults.missing_blocks = {11};
    CHECK(slot.driver.read(10, 4, found.data()) == CardStatus::timeout);
    CHECK(slot.driver.write(10, 4, written.data()) == CardStatus::timeout);
    faults.missing_blocks.clear();
    faults.silent_command = 18;
    CHECK(slot.driver.read(10, 4, found.data()) == CardStatus::timeout);
    faults.silent_command = 1000;

    REQUIRE(slot.driver.write(10, 4, written.data()) == CardStatus::ok);
    REQUIRE(slot.driver.read(10, 4, found.data()) == CardStatus::ok);
    CHECK(found == written);
  }
}

TEST_CASE("a protected card is not written; a block that the card refuses is told") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    slot.card.faults.write_protected = true;
    REQUIRE(slot.open() == CardStatus::ok);
    slot.card.log.clear();
    const auto words = numbered(2);
    CHECK(slot.driver.write(0, 1, words.data()) == CardStatus::write_protected);
    CHECK(slot.card.log == "");
  }
  for (const auto& setup : {f7, h7}) {
    for (const uint32_t count : {1u, 2u}) {
      Slot slot(setup);
      REQUIRE(slot.open() == CardStatus::ok);
      slot.card.faults.protected_blocks = {5};
      const auto words = numbered(2);
      CHECK(slot.driver.write(5, count, words.data()) == CardStatus::write_protected);
    }
  }
}

TEST_CASE("a card that never gets ready again is a timeout") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    REQUIRE(slot.open() == CardStatus::ok);
    slot.card.faults.always_busy = true;
    const auto words = numbered(1);
    const uint32_t before = slot.bus.milliseconds();
    CHECK(slot.driver.write(5, 1, words.data()) == CardStatus::timeout);
    CHECK(slot.bus.milliseconds() - before < 1100);
  }
}

TEST_CASE("many blocks at once take a slow card longer than one may, and are written") {
  for (const auto& setup : {f7, h7}) {
    Slot slot(setup);
    REQUIRE(slot.open() == CardStatus::ok);
    slot.card.faults.busy_polls = 100'000;
    const auto words = numbered(16);
    const uint32_t before = slot.bus.milliseconds();
    CHECK(slot.driver.write(5, 16, words.data()) == CardStatus::ok);
    CHECK(slot.bus.milliseconds() - before > 2000);
    CHECK(slot.card.log.substr(slot.card.log.size() - 9) == "25 12 13 ");
  }
}

TEST_CASE("a card can be changed") {
  Slot slot(f7);
  REQUIRE(slot.open() == CardStatus::ok);
  slot.card.faults.absent = true;
  std::vector<uint32_t> words(128);
  CHECK(slot.driver.read(0, 1, words.data()) == CardStatus::timeout);
  CHECK(slot.open() == CardStatus::absent);
  CHECK(slot.driver.read(0, 1, words.data()) == CardStatus::absent);
  slot.card.faults.absent = false;
  CHECK(slot.open() == CardStatus::ok);
  CHECK(slot.driver.read(0, 1, words.data()) == CardStatus::ok);
}
