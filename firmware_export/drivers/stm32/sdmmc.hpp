// SD cards at an STM32's SDMMC: 4 data lines, polled, at most 25 MHz. The STM32F7 and the STM32H7 have
// different generations of the peripheral (RM0385 section 35, RM0455 section 55).
#pragma once

#include "drivers/sd/protocol.hpp"

namespace pmt::stm32 {

enum class SdmmcGeneration { f7, h7 };

class Sdmmc {
 public:
  struct Setup {
    uint32_t base;
    uint32_t kernel_hz;
    SdmmcGeneration generation;
  };
  // Clocks and pins are on.
  explicit Sdmmc(const Setup& setup) : setup_(setup) {}

  // These are open_card, read_blocks and write_blocks of common/board.hpp.
  board::CardStatus open(uint32_t* blocks);
  board::CardStatus read(uint32_t first, uint32_t count, void* bytes);
  board::CardStatus write(uint32_t first, uint32_t count, const void* bytes);

 private:
  enum class Response { none, r1, r2, r3, r6, r7 };
  enum class Direction { read, write };

  board::CardStatus identify(uint32_t* card_bits);
  board::CardStatus wait_until_powered(bool version2, uint32_t* ocr);
  board::CardStatus select();
  board::CardStatus command(uint32_t index, uint32_t argument, Response response, uint32_t extra = 0);
  board::CardStatus application_command(uint32_t index, uint32_t argument, Response response);
  board::CardStatus check_range(uint32_t first, uint32_t count) const;
  board::CardStatus start_transfer(uint32_t first, uint32_t count, Direction direction);
  board::CardStatus finish_transfer(uint32_t count, board::CardStatus status);
  board::CardStatus move_words(uint32_t count, uint32_t* words, const uint32_t* words_out);
  board::CardStatus wait_until_ready();
  void set_clock(uint32_t most_hz, bool wide);
  uint32_t read_register(uint32_t offset) const;
  void write_register(uint32_t offset, uint32_t value) const;
  void clear_flags() const;
  bool is_f7() const { return setup_.generation == SdmmcGeneration::f7; }

  Setup setup_;
  uint32_t clock_hz_ = 0;
  uint32_t address_ = 0;  // the card's RCA, in the upper half
  uint32_t blocks_ = 0;
  bool by_blocks_ = false;  // addresses count blocks, not bytes
  bool write_protected_ = false;
};

}  // namespace pmt::stm32
