#include "drivers/sd/spi_card.hpp"

namespace pmt::sd {

using board::CardStatus;

namespace {

constexpr uint8_t idle_byte = 0xFF;
constexpr uint8_t in_idle_state = 0x01;  // of R1
constexpr uint8_t illegal_command = 0x04;
constexpr uint8_t bad_address = 0x60;  // address and parameter error
constexpr uint8_t bad_checksum = 0x08;
constexpr uint8_t no_response = 0xFF;
constexpr uint8_t start_token = 0xFE;
constexpr uint32_t most_response_polls = 10;
constexpr uint32_t crc_on_off = 59;
constexpr uint32_t data_milliseconds = 500;

CardStatus status_of_response(uint8_t r1) {
  if (r1 == no_response) return CardStatus::timeout;
  if ((r1 & bad_checksum) != 0) return CardStatus::checksum;
  if ((r1 & bad_address) != 0) return CardStatus::out_of_range;
  return r1 == 0 ? CardStatus::ok : CardStatus::failed;
}

}  // namespace

// x^7 + x^3 + 1
uint8_t crc7(const uint8_t* bytes, uint32_t count) {
  uint8_t crc = 0;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t bit = 0x80; bit != 0; bit >>= 1) {
      const bool out = ((crc & 0x40) != 0) != ((bytes[i] & bit) != 0);
      crc = static_cast<uint8_t>((crc << 1 ^ (out ? 0x09 : 0)) & 0x7F);
    }
  }
  return crc;
}

// x^16 + x^12 + x^5 + 1
uint16_t crc16(const uint8_t* bytes, uint32_t count) {
  uint32_t crc = 0;
  for (uint32_t i = 0; i < count; ++i) {
    crc ^= static_cast<uint32_t>(bytes[i]) << 8;
    for (int32_t bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
  }
  return static_cast<uint16_t>(crc);
}

CardStatus SpiCard::open(uint32_t* blocks) {
  *blocks = 0;
  blocks_ = 0;
  bus_.set_fast(false);
  bus_.select(false);
  for (int32_t i = 0; i < 10; ++i) bus_.exchange(idle_byte);  // 74 clocks and more
  const CardStatus powered = power_up();
  const CardStatus status = powered == CardStatus::ok ? read_size() : powered;
  end_command();
  if (status != CardStatus::ok) return status;
  bus_.set_fast(true);
  *blocks = blocks_;
  return CardStatus::ok;
}

CardStatus SpiCard::power_up() {
  if (command(go_idle_state, 0) != in_idle_state) return CardStatus::absent;
  const uint8_t condition = command(send_if_cond, check_pattern);
  const bool version2 = (condition & illegal_command) == 0;
  if (version2 && (response_word() & 0xFFF) != check_pattern) return CardStatus::failed;
  // Without this the card checks no checksums but those of the first two commands.
  command(crc_on_off, 1);
  const uint32_t start = board::milliseconds();
  uint8_t response = no_response;
  while (response != 0) {
    if (board::milliseconds() - start > start_up_milliseconds) return CardStatus::timeout;
    response = application_command(app_sd_send_op_cond, version2 ? high_capacity : 0);
  }
  // QEMU's card says here that it is still idle.
  if ((command(read_ocr, 0) & ~in_idle_state) != 0) return CardStatus::failed;
  by_blocks_ = (response_word() & high_capacity) != 0;
  return status_of_response(command(set_blocklen, board::block_bytes));
}

CardStatus SpiCard::read_size() {
  const CardStatus asked = status_of_response(command(send_csd, 0));
  if (asked != CardStatus::ok) return asked;
  uint8_t bytes[16];
  const CardStatus status = read_data(bytes, sizeof bytes);
  if (status != CardStatus::ok) return status;
  uint32_t csd[4] = {};
  for (uint32_t i = 0; i < 16; ++i) csd[i / 4] = csd[i / 4] << 8 | bytes[i];
  const CardSize size = size_of(csd);
  if (size.blocks == 0) return CardStatus::failed;
  blocks_ = size.blocks;
  write_protected_ = size.write_protected;
  return CardStatus::ok;
}

CardStatus SpiCard::read(uint32_t first, uint32_t count, void* bytes) {
  CardStatus status = check_range(first, count);
  auto* to = static_cast<uint8_t*>(bytes);
  for (uint32_t i = 0; i < count && status == CardStatus::ok; ++i, to += board::block_bytes) {
    const uint32_t address = by_blocks_ ? first + i : (first + i) * board::block_bytes;
    status = status_of_response(command(read_single_block, address));
    if (status == CardStatus::ok) status = read_data(to, board::block_bytes);
    end_command();
  }
  return status;
}

CardStatus SpiCard::write(uint32_t first, uint32_t count, const void* bytes) {
  CardStatus status = check_range(first, count);
  if (status == CardStatus::ok && write_protected_) return CardStatus::write_protected;
  const auto* from = static_cast<const uint8_t*>(bytes);
  for (uint32_t i = 0; i < count && status == CardStatus::ok; ++i, from += board::block_bytes) {
    const uint32_t address = by_blocks_ ? first + i : (first + i) * board::block_bytes;
    status = status_of_response(command(write_block, address));
    if (status == CardStatus::ok) status = write_data(from);
    if (status == CardStatus::ok) {
      status = status_of_response(command(send_status, 0));
      constexpr uint8_t protection = 0x20 | 0x02;  // WP_VIOLATION, WP_ERASE_SKIP
      const uint8_t rest = bus_.exchange(idle_byte);
      if (status == CardStatus::ok && (rest & protection) != 0) status = CardStatus::write_protected;
      if (status == CardStatus::ok && rest != 0) status = CardStatus::failed;
    }
    end_command();
  }
  return status;
}

CardStatus SpiCard::check_range(uint32_t first, uint32_t count) const {
  if (blocks_ == 0) return CardStatus::absent;
  return board::is_on_card(first, count, blocks_) ? CardStatus::ok : CardStatus::out_of_range;
}

// Selects the card and leaves it so: data may follow the response.
uint8_t SpiCard::command(uint32_t index, uint32_t argument) {
  end_command();
  bus_.select(true);
  wait_while_busy();
  uint8_t frame[6] = {static_cast<uint8_t>(0x40 | index),   static_cast<uint8_t>(argument >> 24),
                      static_cast<uint8_t>(argument >> 16), static_cast<uint8_t>(argument >> 8),
                      static_cast<uint8_t>(argument),       0};
  frame[5] = static_cast<uint8_t>(crc7(frame, 5) << 1 | 1);
  for (const uint8_t byte : frame) bus_.exchange(byte);
  uint8_t response = no_response;
  for (uint32_t i = 0; i < most_response_polls && (response & 0x80) != 0; ++i) response = bus_.exchange(idle_byte);
  return response;
}

uint8_t SpiCard::application_command(uint32_t index, uint32_t argument) {
  command(app_cmd, 0);
  return command(index, argument);
}

uint32_t SpiCard::response_word() {
  uint32_t word = 0;
  for (int32_t i = 0; i < 4; ++i) word = word << 8 | bus_.exchange(idle_byte);
  return word;
}

// The card lets go of the line with the next clocks.
void SpiCard::end_command() {
  bus_.select(false);
  bus_.exchange(idle_byte);
}

CardStatus SpiCard::read_data(uint8_t* bytes, uint32_t count) {
  const uint32_t start = board::milliseconds();
  uint8_t token = idle_byte;
  while (token == idle_byte) {
    if (board::milliseconds() - start > data_milliseconds) return CardStatus::timeout;
    token = bus_.exchange(idle_byte);
  }
  if (token != start_token) return CardStatus::failed;
  for (uint32_t i = 0; i < count; ++i) bytes[i] = bus_.exchange(idle_byte);
  const uint32_t high = bus_.exchange(idle_byte);
  const uint32_t crc = high << 8 | bus_.exchange(idle_byte);
  return crc == crc16(bytes, count) ? CardStatus::ok : CardStatus::checksum;
}

CardStatus SpiCard::write_data(const uint8_t* bytes) {
  bus_.exchange(idle_byte);
  bus_.exchange(start_token);
  for (uint32_t i = 0; i < board::block_bytes; ++i) bus_.exchange(bytes[i]);
  const uint16_t crc = crc16(bytes, board::block_bytes);
  bus_.exchange(static_cast<uint8_t>(crc >> 8));
  bus_.exchange(static_cast<uint8_t>(crc));
  constexpr uint8_t accepted = 0x05, wrong_checksum = 0x0B;
  const uint8_t response = bus_.exchange(idle_byte) & 0x1F;
  if (response == wrong_checksum) return CardStatus::checksum;
  if (response != accepted) return CardStatus::failed;
  return wait_while_busy() ? CardStatus::ok : CardStatus::timeout;
}

bool SpiCard::wait_while_busy() {
  const uint32_t start = board::milliseconds();
  while (bus_.exchange(idle_byte) != idle_byte) {
    if (board::milliseconds() - start > program_milliseconds) return false;
  }
  return true;
}

}  // namespace pmt::sd
