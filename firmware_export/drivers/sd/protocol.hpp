// The protocol of cards and hosts: SD Specifications, Part 1, Physical Layer Simplified.
#pragma once

#include <cstdint>

#include "common/board.hpp"

namespace pmt::sd {

enum Command : uint32_t {
  go_idle_state = 0,
  all_send_cid = 2,
  send_relative_addr = 3,
  select_card = 7,
  send_if_cond = 8,
  send_csd = 9,
  stop_transmission = 12,
  send_status = 13,
  set_blocklen = 16,
  read_single_block = 17,
  read_multiple_block = 18,
  write_block = 24,
  write_multiple_block = 25,
  app_cmd = 55,
  read_ocr = 58,
  // After app_cmd.
  app_set_bus_width = 6,
  app_sd_send_op_cond = 41,
};

constexpr uint32_t check_pattern = 0x1AA;         // send_if_cond: 2.7 to 3.6 V, and a pattern to echo
constexpr uint32_t all_voltages = 0x00FF8000;     // 2.7 to 3.6 V
constexpr uint32_t high_capacity = 1u << 30;      // HCS in the argument, CCS in the response
constexpr uint32_t powered_up = 1u << 31;         // of the OCR
constexpr uint32_t start_up_milliseconds = 1000;  // the longest that a card may take
constexpr uint32_t program_milliseconds = 1000;   // 500 ms at most for the largest cards

// The card status that R1 carries.
constexpr uint32_t status_out_of_range = 1u << 31;
constexpr uint32_t status_address_error = 1u << 30;
constexpr uint32_t status_write_protected = 1u << 26 | 1u << 15;  // WP_VIOLATION, WP_ERASE_SKIP
// Without COM_CRC_ERROR and ILLEGAL_COMMAND: they tell of the command before, which got no response.
constexpr uint32_t status_any_error = 0xFD398008;
constexpr uint32_t status_ready_for_data = 1u << 8;
constexpr uint32_t status_state = 15u << 9;
constexpr uint32_t state_transfer = 4u << 9;

board::CardStatus status_of(uint32_t card_status);

struct CardSize {
  uint32_t blocks;  // of 512 bytes; 0 where the card is of no known kind
  bool write_protected;
};

// From the CSD, most significant word first.
CardSize size_of(const uint32_t (&csd)[4]);

}  // namespace pmt::sd
