#include "card_model.hpp"

namespace pmt::test {
namespace {

constexpr uint32_t relative_address = 0xB3680000u;
constexpr uint32_t illegal_command = 1u << 22, out_of_range = 1u << 31, protection_violation = 1u << 26;
constexpr uint32_t ready_for_data = 1u << 8;
constexpr uint32_t programming = 7;

}  // namespace

CardModel::Response CardModel::short_response(uint32_t word, uint32_t index) {
  return {Response::Kind::ok, {word, 0, 0, 0}, index};
}

CardModel::Response CardModel::status(uint32_t index, uint32_t errors) {
  const bool busy = faults.always_busy && written_;
  const uint32_t state = busy ? programming : static_cast<uint32_t>(state_);
  const uint32_t word = errors | late_errors_ | state << 9 | (busy ? 0 : ready_for_data);
  late_errors_ = 0;
  return short_response(word, index);
}

CardModel::Response CardModel::command(uint32_t index, uint32_t argument) {
  log += (application_ ? "A" : "") + std::to_string(index) + " ";
  if (faults.absent || index == faults.silent_command) return {};
  Response response;
  if (application_) {
    application_ = false;
    response = application_command(index, argument);
  } else {
    switch (index) {
      case 0:
        state_ = State::idle;
        wide_ = false;
        polls_ = 0;
        break;
      case 8:
        if (version2_) response = short_response(argument, index);
        break;
      case 55:
        application_ = true;
        response = status(index);
        break;
      case 2:
        state_ = State::identification;
        response = {Response::Kind::ok, {1, 2, 3, 4}, 63};
        break;
      case 3:
        state_ = State::standby;
        response = short_response(relative_address, index);
        break;
      case 9:
        if (argument == relative_address) response = {Response::Kind::ok, csd(), 63};
        break;
      case 7:
        state_ = State::transfer;
        response = status(index);
        break;
      case 12: {
        const bool at_the_end = state_ == State::sending && position_ >= blocks_;
        state_ = State::transfer;
        response = status(index, at_the_end ? out_of_range : 0);
        break;
      }
      case 13: response = status(index); break;
      case 16: response = status(index, argument == 512 ? 0 : illegal_command); break;
      case 17:
      case 18:
      case 24:
      case 25: response = start_blocks(index, argument); break;
      default: break;
    }
  }
  if (index == faults.damaged_command && response.kind == Response::Kind::ok) response.kind = Response::Kind::damaged;
  return response;
}

CardModel::Response CardModel::application_command(uint32_t index, uint32_t argument) {
  if (index == 6 && argument == 2) {
    wide_ = true;
    return status(index);
  }
  if (index != 41) return {};
  const bool ready = faults.power_up_polls >= 0 && polls_++ >= faults.power_up_polls;
  if (ready) state_ = State::ready;
  const bool large = high_capacity_ && (argument & 1u << 30) != 0;
  return short_response(0x00FF8000u | (ready ? 1u << 31 | (large ? 1u << 30 : 0) : 0), 63);
}

CardModel::Response CardModel::start_blocks(uint32_t index, uint32_t argument) {
  position_ = high_capacity_ ? argument : argument / 512;
  if (state_ != State::transfer) return {};
  if (position_ >= blocks_) return status(index, out_of_range);
  single_ = index == 17 || index == 24;
  const Response response = status(index);
  state_ = index < 24 ? State::sending : State::receiving;
  return response;
}

void CardModel::block_sent() {
  ++position_;
  if (single_) state_ = State::transfer;
}

void CardModel::receive_block(const Block& block) {
  written_ = true;
  if (faults.protected_blocks.count(position_) != 0) {
    late_errors_ |= protection_violation;
  } else {
    content_[position_] = block;
  }
  ++position_;
  if (single_) state_ = State::transfer;
}

// Version 1 with blocks of 1024 bytes, so that sizes above 1 GB are said; version 2 as it is.
std::array<uint32_t, 4> CardModel::csd() const {
  const uint32_t protection = faults.write_protected ? 1u << 12 : 0;
  if (high_capacity_) {
    const uint32_t size = blocks_ / 1024 - 1;
    return {0x400E0032u, 0x5B590000u | size >> 16, size << 16 | 0x7F80u, 0x0A400000u | protection};
  }
  const uint32_t size = blocks_ / 512 / 2 - 1;  // C_SIZE_MULT = 7: 512 blocks of 1024 bytes
  return {0x00260032u, 10u << 16 | size >> 2, size << 30 | 7u << 15, protection};
}

}  // namespace pmt::test
