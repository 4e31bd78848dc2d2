#include "drivers/stm32/sdmmc.hpp"

#include "drivers/io.hpp"
#include "drivers/stm32/sdmmc_registers.hpp"

namespace pmt::stm32 {

using board::CardStatus;

namespace {

constexpr uint32_t identification_hz = 400'000;
constexpr uint32_t transfer_hz = 25'000'000;
constexpr uint32_t command_milliseconds = 100;  // a response takes 64 clocks at most
constexpr uint32_t data_milliseconds = 500;     // of the controller's own timer
constexpr uint32_t most_blocks = 32768;         // of one transfer: DLEN has 25 bits
constexpr uint32_t words_at_once = 8;
constexpr uint32_t power_milliseconds = 3;  // off, and after it on before the first command
constexpr uint32_t data_errors = SDMMC_STA_DCRCFAIL | SDMMC_STA_DTIMEOUT | SDMMC_STA_TXUNDERR | SDMMC_STA_RXOVERR;

uint32_t round_up_division(uint32_t value, uint32_t by) { return (value + by - 1) / by; }

void wait(uint32_t milliseconds) {
  const uint32_t start = board::milliseconds();
  while (board::milliseconds() - start < milliseconds) {
  }
}

}  // namespace

uint32_t Sdmmc::read_register(uint32_t offset) const { return io::read(setup_.base + offset); }
void Sdmmc::write_register(uint32_t offset, uint32_t value) const { io::write(setup_.base + offset, value); }
void Sdmmc::clear_flags() const { write_register(SDMMC_ICR, is_f7() ? F7_ICR_ALL : H7_ICR_ALL); }

#define PMT_RETURN_IF_BAD(expression)                    \
  do {                                                   \
    const CardStatus pmt_status = (expression);          \
    if (pmt_status != CardStatus::ok) return pmt_status; \
  } while (0)

CardStatus Sdmmc::open(uint32_t* blocks) {
  *blocks = 0;
  blocks_ = 0;
  address_ = 0;
  write_register(SDMMC_MASK, 0);
  write_register(SDMMC_DCTRL, 0);
  write_register(SDMMC_POWER, 0);
  set_clock(identification_hz, false);
  wait(power_milliseconds);  // RM0455: off for a millisecond; RM0385: for seven clocks of the bus
  write_register(SDMMC_POWER, SDMMC_POWER_ON);
  wait(power_milliseconds);  // 74 clocks at 400 kHz; and the power ramps up
  uint32_t ocr = 0;
  PMT_RETURN_IF_BAD(identify(&ocr));
  by_blocks_ = (ocr & sd::high_capacity) != 0;
  PMT_RETURN_IF_BAD(select());
  *blocks = blocks_;
  return CardStatus::ok;
}

// A card that does not respond to the first commands is not there.
CardStatus Sdmmc::identify(uint32_t* ocr) {
  PMT_RETURN_IF_BAD(command(sd::go_idle_state, 0, Response::none));
  const CardStatus condition = command(sd::send_if_cond, sd::check_pattern, Response::r7);
  if (condition != CardStatus::ok && condition != CardStatus::timeout) return condition;
  const bool version2 = condition == CardStatus::ok;
  if (version2 && (read_register(SDMMC_RESP1) & 0xFFF) != sd::check_pattern) return CardStatus::failed;
  if (!version2) PMT_RETURN_IF_BAD(command(sd::go_idle_state, 0, Response::none));
  return wait_until_powered(version2, ocr);
}

CardStatus Sdmmc::wait_until_powered(bool version2, uint32_t* ocr) {
  const uint32_t argument = sd::all_voltages | (version2 ? sd::high_capacity : 0);
  const uint32_t start = board::milliseconds();
  while (board::milliseconds() - start < sd::start_up_milliseconds) {
    const CardStatus status = application_command(sd::app_sd_send_op_cond, argument, Response::r3);
    if (status == CardStatus::timeout && !version2) return CardStatus::absent;
    PMT_RETURN_IF_BAD(status);
    *ocr = read_register(SDMMC_RESP1);
    if ((*ocr & sd::powered_up) != 0) return CardStatus::ok;
  }
  return CardStatus::timeout;
}

// From the card's address to the state in which blocks move over four lines.
CardStatus Sdmmc::select() {
  PMT_RETURN_IF_BAD(command(sd::all_send_cid, 0, Response::r2));
  PMT_RETURN_IF_BAD(command(sd::send_relative_addr, 0, Response::r6));
  address_ = read_register(SDMMC_RESP1) & 0xFFFF0000u;
  PMT_RETURN_IF_BAD(command(sd::send_csd, address_, Response::r2));
  uint32_t csd[4];
  for (uint32_t i = 0; i < 4; ++i) csd[i] = read_register(SDMMC_RESP1 + 4 * i);
  const sd::CardSize size = sd::size_of(csd);
  if (size.blocks == 0) return CardStatus::failed;
  PMT_RETURN_IF_BAD(command(sd::select_card, address_, Response::r1));
  PMT_RETURN_IF_BAD(application_command(sd::app_set_bus_width, 2, Response::r1));
  set_clock(transfer_hz, true);
  PMT_RETURN_IF_BAD(command(sd::set_blocklen, board::block_bytes, Response::r1));
  write_protected_ = size.write_protected;
  blocks_ = size.blocks;
  return CardStatus::ok;
}

CardStatus Sdmmc::read(uint32_t first, uint32_t count, void* bytes) {
  PMT_RETURN_IF_BAD(check_range(first, count));
  auto* words = static_cast<uint32_t*>(bytes);
  while (count > 0) {
    const uint32_t now = count < most_blocks ? count : most_blocks;
    PMT_RETURN_IF_BAD(start_transfer(first, now, Direction::read));
    PMT_RETURN_IF_BAD(finish_transfer(now, move_words(now * board::block_bytes / 4, words, nullptr)));
    first += now;
    count -= now;
    words += now * board::block_bytes / 4;
  }
  return CardStatus::ok;
}

CardStatus Sdmmc::write(uint32_t first, uint32_t count, const void* bytes) {
  PMT_RETURN_IF_BAD(check_range(first, count));
  if (write_protected_) return CardStatus::write_protected;
  const auto* words = static_cast<const uint32_t*>(bytes);
  while (count > 0) {
    const uint32_t now = count < most_blocks ? count : most_blocks;
    PMT_RETURN_IF_BAD(start_transfer(first, now, Direction::write));
    PMT_RETURN_IF_BAD(finish_transfer(now, move_words(now * board::block_bytes / 4, nullptr, words)));
    PMT_RETURN_IF_BAD(wait_until_ready());
    first += now;
    count -= now;
    words += now * board::block_bytes / 4;
  }
  return CardStatus::ok;
}

CardStatus Sdmmc::check_range(uint32_t first, uint32_t count) const {
  if (blocks_ == 0) return CardStatus::absent;
  return board::is_on_card(first, count, blocks_) ? CardStatus::ok : CardStatus::out_of_range;
}

// The F7 takes the data path's enable bit: for a read before the command, for data may follow at once;
// for a write after the response. The H7 starts the path itself with a command that is marked. The last
// transfer has left the path off: a write to DCTRL that soon before the next one would be lost on the F7.
CardStatus Sdmmc::start_transfer(uint32_t first, uint32_t count, Direction direction) {
  const bool reads = direction == Direction::read;
  const uint32_t control = SDMMC_DCTRL_DBLOCKSIZE_512 | (reads ? SDMMC_DCTRL_DTDIR_FROM_CARD : 0);
  write_register(SDMMC_DTIMER, clock_hz_ / 1000 * data_milliseconds);
  write_register(SDMMC_DLEN, count * board::block_bytes);
  write_register(SDMMC_DCTRL, control | (is_f7() && reads ? SDMMC_DCTRL_DTEN : 0));
  const uint32_t single = reads ? sd::read_single_block : sd::write_block;
  const uint32_t multiple = reads ? sd::read_multiple_block : sd::write_multiple_block;
  const uint32_t address = by_blocks_ ? first : first * board::block_bytes;
  const CardStatus status =
      command(count == 1 ? single : multiple, address, Response::r1, is_f7() ? 0 : H7_CMD_CMDTRANS);
  if (status != CardStatus::ok) {
    write_register(SDMMC_DCTRL, 0);
    return status;
  }
  if (is_f7() && !reads) write_register(SDMMC_DCTRL, control | SDMMC_DCTRL_DTEN);
  return CardStatus::ok;
}

// Either `in` or `out` is given.
CardStatus Sdmmc::move_words(uint32_t count, uint32_t* in, const uint32_t* out) {
  const uint32_t ready = in != nullptr ? SDMMC_STA_RXFIFOHF : SDMMC_STA_TXFIFOHE;
  uint32_t start = board::milliseconds();
  uint32_t moved = 0;
  for (;;) {
    const uint32_t state = read_register(SDMMC_STA);
    if ((state & SDMMC_STA_DCRCFAIL) != 0) return CardStatus::checksum;
    if ((state & SDMMC_STA_DTIMEOUT) != 0) return CardStatus::timeout;
    if ((state & data_errors) != 0) return CardStatus::failed;
    if (moved < count && (state & ready) != 0) {
      for (uint32_t i = 0; i < words_at_once; ++i, ++moved) {
        if (in != nullptr) {
          in[moved] = read_register(SDMMC_FIFO);
        } else {
          write_register(SDMMC_FIFO, out[moved]);
        }
      }
      start = board::milliseconds();
    } else if (moved == count && (state & SDMMC_STA_DATAEND) != 0) {
      return CardStatus::ok;
    }
    // A block takes 43 us at 24 MHz; the rest is the card's, which has data_milliseconds for each.
    if (board::milliseconds() - start > 2 * data_milliseconds) return CardStatus::timeout;
  }
}

// Several blocks end by a command, and so does a single one that went wrong. A card that was asked for its
// last block has read ahead: that it complains is to be ignored (Physical Layer, 4.10.1, OUT_OF_RANGE).
CardStatus Sdmmc::finish_transfer(uint32_t count, CardStatus status) {
  if (count > 1 || status != CardStatus::ok) {
    const CardStatus stopped = command(sd::stop_transmission, 0, Response::r1, is_f7() ? 0 : H7_CMD_CMDSTOP);
    if (status == CardStatus::ok && stopped != CardStatus::out_of_range) status = stopped;
  }
  write_register(SDMMC_DCTRL, is_f7() ? 0 : H7_DCTRL_FIFORST);
  clear_flags();
  return status;
}

// The card holds no more than a promise until it is back in the transfer state.
CardStatus Sdmmc::wait_until_ready() {
  const uint32_t start = board::milliseconds();
  while (board::milliseconds() - start < sd::program_milliseconds) {
    PMT_RETURN_IF_BAD(command(sd::send_status, address_, Response::r1));
    const uint32_t status = read_register(SDMMC_RESP1);
    if ((status & sd::status_ready_for_data) != 0 && (status & sd::status_state) == sd::state_transfer) {
      return CardStatus::ok;
    }
  }
  return CardStatus::timeout;
}

CardStatus Sdmmc::application_command(uint32_t index, uint32_t argument, Response response) {
  PMT_RETURN_IF_BAD(command(sd::app_cmd, address_, Response::r1));
  return command(index, argument, response);
}

CardStatus Sdmmc::command(uint32_t index, uint32_t argument, Response response, uint32_t extra) {
  const bool f7 = is_f7();
  uint32_t waits = 0;
  if (response == Response::r2) {
    waits = f7 ? F7_CMD_WAITRESP_LONG : H7_CMD_WAITRESP_LONG;
  } else if (response == Response::r3 && !f7) {
    waits = H7_CMD_WAITRESP_SHORT_NO_CRC;
  } else if (response != Response::none) {
    waits = f7 ? F7_CMD_WAITRESP_SHORT : H7_CMD_WAITRESP_SHORT;
  }
  clear_flags();
  write_register(SDMMC_ARG, argument);
  write_register(SDMMC_CMD, index | waits | extra | (f7 ? F7_CMD_CPSMEN : H7_CMD_CPSMEN));

  const uint32_t done =
      response == Response::none ? SDMMC_STA_CMDSENT : SDMMC_STA_CMDREND | SDMMC_STA_CCRCFAIL | SDMMC_STA_CTIMEOUT;
  const uint32_t start = board::milliseconds();
  uint32_t state = 0;
  while ((state & done) == 0) {
    if (board::milliseconds() - start > command_milliseconds) return CardStatus::failed;
    state = read_register(SDMMC_STA);
  }
  if ((state & SDMMC_STA_CTIMEOUT) != 0) return CardStatus::timeout;
  // R3 carries no checksum: the F7 reports it as wrong.
  if ((state & SDMMC_STA_CCRCFAIL) != 0 && response != Response::r3) return CardStatus::checksum;
  if (response != Response::r1) return CardStatus::ok;
  if (read_register(SDMMC_RESPCMD) != index) return CardStatus::failed;
  return sd::status_of(read_register(SDMMC_RESP1));
}

// F7: kernel / (CLKDIV + 2). H7: kernel / (2 * CLKDIV).
void Sdmmc::set_clock(uint32_t most_hz, bool wide) {
  const uint32_t ratio = round_up_division(setup_.kernel_hz, most_hz);
  if (is_f7()) {
    const uint32_t divider = ratio < 2 ? 0 : ratio - 2;
    clock_hz_ = setup_.kernel_hz / (divider + 2);
    write_register(SDMMC_CLKCR, divider | F7_CLKCR_CLKEN | (wide ? F7_CLKCR_WIDBUS_4 : 0));
  } else {
    const uint32_t divider = round_up_division(ratio, 2);
    clock_hz_ = setup_.kernel_hz / (2 * divider);
    write_register(SDMMC_CLKCR, divider | (wide ? H7_CLKCR_WIDBUS_4 : 0));
  }
}

}  // namespace pmt::stm32
