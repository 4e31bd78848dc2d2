// SD cards in SPI mode, for controllers without SDMMC: any SPI master that exchanges bytes.
#pragma once

#include "drivers/sd/protocol.hpp"

namespace pmt::sd {

// The SPI bus of the card.
struct SpiBus {
  uint8_t (*exchange)(uint8_t byte);
  void (*select)(bool on);
  // Slow (400 kHz at most) until the card is identified.
  void (*set_fast)(bool fast);
};

class SpiCard {
 public:
  explicit SpiCard(const SpiBus& bus) : bus_(bus) {}

  // These are open_card, read_blocks and write_blocks of common/board.hpp.
  board::CardStatus open(uint32_t* blocks);
  board::CardStatus read(uint32_t first, uint32_t count, void* bytes);
  board::CardStatus write(uint32_t first, uint32_t count, const void* bytes);

 private:
  uint8_t command(uint32_t index, uint32_t argument);
  uint8_t application_command(uint32_t index, uint32_t argument);
  uint32_t response_word();
  void end_command();
  board::CardStatus power_up();
  board::CardStatus read_size();
  board::CardStatus read_data(uint8_t* bytes, uint32_t count);
  board::CardStatus write_data(const uint8_t* bytes);
  board::CardStatus check_range(uint32_t first, uint32_t count) const;
  bool wait_while_busy();

  SpiBus bus_;
  uint32_t blocks_ = 0;
  bool by_blocks_ = false;
  bool write_protected_ = false;
};

// The checksums of commands and of blocks.
uint8_t crc7(const uint8_t* bytes, uint32_t count);
uint16_t crc16(const uint8_t* bytes, uint32_t count);

}  // namespace pmt::sd
