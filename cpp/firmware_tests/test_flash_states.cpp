// States of a learner in an STM32F746's own flash, against a model of its controller.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "drivers/cortex_m/processor.hpp"
#include "drivers/stm32f7/chip.hpp"
#include "drivers/stm32f7/flash_states.hpp"
#include "register_model.hpp"

namespace {

uint32_t allowed_begin = 0, allowed_bytes = 0;

}  // namespace

// The memory protection unit is the processor's.
bool pmt::cortex_m::allow_writes(uint32_t begin, uint32_t bytes) {
  allowed_begin = begin;
  allowed_bytes = bytes;
  return true;
}

namespace {

using namespace pmt;
using namespace pmt::stm32f7;

struct Controller : test::RegisterModel {
  explicit Controller(std::vector<uint32_t>& words) : RegisterModel(FLASH_ACR), words(words) {
    at(FLASH_CR) = FLASH_CR_LOCK;
  }
  void write(uint32_t offset, uint32_t value) override {
    const uint32_t address = FLASH_ACR + offset;
    if (address == FLASH_KEYR) return unlock(value);
    if (address == FLASH_SR) {
      at(FLASH_SR) &= ~value;
      return;
    }
    REQUIRE(address == FLASH_CR);
    const bool is_locked = (at(FLASH_CR) & FLASH_CR_LOCK) != 0;
    if (is_locked) return;
    RegisterModel::write(offset, value);
    if ((value & FLASH_CR_STRT) == 0) return;
    REQUIRE((value & FLASH_CR_SER) != 0);
    const uint32_t sector = value >> FLASH_CR_SNB_shift & 15;
    REQUIRE((sector == 6 || sector == 7));
    std::fill_n(words.begin() + (sector - 6) * (state_slot_bytes / 4), state_slot_bytes / 4, 0xFFFFFFFFu);
    busy = 3;
    ++erased;
  }
  uint32_t read(uint32_t offset) override {
    const uint32_t value = RegisterModel::read(offset);
    if (FLASH_ACR + offset != FLASH_SR || busy == 0) return value;
    --busy;
    return value | FLASH_SR_BSY;
  }
  void unlock(uint32_t key) {
    REQUIRE((at(FLASH_CR) & FLASH_CR_LOCK) != 0);
    REQUIRE(key == (keys == 0 ? 0x45670123u : 0xCDEF89ABu));
    keys = (keys + 1) % 2;
    if (keys == 0) at(FLASH_CR) = 0;
  }
  std::vector<uint32_t>& words;
  int32_t keys = 0, busy = 0, erased = 0;
};

struct Sectors : test::Peripheral {
  uint32_t read(uint32_t offset) override { return words[offset / 4]; }
  void write(uint32_t offset, uint32_t value) override {
    const uint32_t control = controller.at(FLASH_CR);
    if (control != (FLASH_CR_PG | FLASH_CR_PSIZE_x32)) {
      controller.at(FLASH_SR) |= 1u << 7;  // ERSERR
      return;
    }
    words[offset / 4] &= value | stuck;
    controller.busy = 2;
  }
  std::vector<uint32_t> words = std::vector<uint32_t>(2 * state_slot_bytes / 4, 0);
  Controller controller{words};
  uint32_t stuck = 0;  // bits that no write clears
};

struct Flash {
  Flash() {
    bus.attach(FLASH_ACR, 0x400, &sectors.controller);
    bus.attach(state_slots_origin, 2 * state_slot_bytes, &sectors);
    const StateStorage* opened = open_flash_states(1000);
    REQUIRE(opened != nullptr);
    storage = *opened;
  }
  bool is_locked() { return (sectors.controller.at(FLASH_CR) & FLASH_CR_LOCK) != 0; }
  test::SimulatedBus bus;
  Sectors sectors;
  StateStorage storage = {};
};

}  // namespace

TEST_CASE("the slots are the last two sectors, and no state is larger than one") {
  Flash flash;
  CHECK(allowed_begin == 0x08080000);
  CHECK(allowed_bytes == 512 * 1024);
  CHECK(flash.storage.slot_bytes == 256 * 1024);
  const size_t most = state_slot_bytes - StateSlots::bytes_before_state;
  CHECK(open_flash_states(most) != nullptr);
  CHECK(open_flash_states(most + 1) == nullptr);
}

TEST_CASE("what is written to an erased slot is read again, and the controller is locked behind it") {
  Flash flash;
  uint8_t wrote[64], found[64] = {};
  for (int i = 0; i < 64; ++i) wrote[i] = static_cast<uint8_t>(3 * i + 1);
  for (int32_t slot : {0, 1}) {
    CHECK(flash.storage.erase(flash.storage.context, slot));
    CHECK(flash.is_locked());
    CHECK(flash.storage.write(flash.storage.context, slot, 96, wrote, 64));
    CHECK(flash.is_locked());
    CHECK(flash.storage.read(flash.storage.context, slot, 96, found, 64));
    CHECK(std::memcmp(wrote, found, 64) == 0);
    // From an odd byte on.
    CHECK(flash.storage.read(flash.storage.context, slot, 99, found, 5));
    CHECK(std::memcmp(wrote + 3, found, 5) == 0);
    // The same bytes again, as after a write that a power cut has torn.
    CHECK(flash.storage.write(flash.storage.context, slot, 96, wrote, 64));
  }
  CHECK(flash.sectors.words[96 / 4] == 0x0A070401);
  CHECK(flash.sectors.words[state_slot_bytes / 4 - 1] == 0xFFFFFFFF);
  CHECK(flash.sectors.controller.erased == 2);
}

TEST_CASE("a cell that keeps its bit, an error of the controller and a place beyond the slot are told") {
  Flash flash;
  const uint8_t zeros[32] = {};
  uint8_t found[32];
  const auto& [context, slot_bytes, read, write, erase] = flash.storage;
  REQUIRE(erase(context, 1));
  CHECK_FALSE(write(context, 1, slot_bytes, zeros, 32));
  CHECK_FALSE(read(context, 1, slot_bytes - 16, found, 32));
  flash.sectors.stuck = 0x100;
  CHECK_FALSE(write(context, 1, 0, zeros, 32));
  CHECK(flash.is_locked());
  flash.sectors.stuck = 0;
  CHECK(write(context, 1, 32, zeros, 32));
  flash.sectors.controller.reactions = {{FLASH_CR, FLASH_CR_PG, FLASH_SR, 1u << 4}};  // WRPERR
  CHECK_FALSE(write(context, 1, 64, zeros, 32));
  CHECK(flash.is_locked());
}

TEST_CASE("a controller that a boot loader has left unlocked takes no keys") {
  Flash flash;
  flash.sectors.controller.at(FLASH_CR) = 0;
  CHECK(flash.storage.erase(flash.storage.context, 0));
  CHECK(flash.sectors.words[0] == 0xFFFFFFFF);
  CHECK(flash.sectors.words[state_slot_bytes / 4] == 0);
  CHECK(flash.is_locked());
}
