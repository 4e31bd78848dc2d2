#include "sdmmc_model.hpp"

#include <cstring>

#include "drivers/stm32/sdmmc_registers.hpp"

namespace pmt::test {

using namespace stm32;

namespace {

constexpr uint32_t looks_until_timeout = 20;
constexpr uint32_t half_fifo = 8;

}  // namespace

uint32_t SdmmcModel::clock_hz() const {
  const uint32_t control = registers_[SDMMC_CLKCR / 4];
  if (is_f7()) return (control & F7_CLKCR_CLKEN) != 0 ? setup_.kernel_hz / ((control & 0xFF) + 2) : 0;
  const uint32_t divider = control & 0x3FF;
  return divider == 0 ? setup_.kernel_hz : setup_.kernel_hz / (2 * divider);
}

bool SdmmcModel::is_wide() const {
  return (registers_[SDMMC_CLKCR / 4] & (is_f7() ? F7_CLKCR_WIDBUS_4 : H7_CLKCR_WIDBUS_4)) != 0;
}

uint32_t SdmmcModel::read(uint32_t offset) {
  if (offset == SDMMC_FIFO) {
    if (fifo_.empty()) {
      note("the FIFO was read when it was empty");
      return 0;
    }
    const uint32_t word = fifo_.front();
    fifo_.pop_front();
    return word;
  }
  if (offset != SDMMC_STA) return registers_[offset / 4];
  if (later_ > 0 && --later_ == 0) flags_ |= later_flags_;
  move_data();
  const bool reads = (registers_[SDMMC_DCTRL / 4] & SDMMC_DCTRL_DTDIR_FROM_CARD) != 0;
  uint32_t state = flags_;
  if (reads && fifo_.size() >= half_fifo) state |= SDMMC_STA_RXFIFOHF;
  if (!reads && fifo_words() - fifo_.size() >= half_fifo) state |= SDMMC_STA_TXFIFOHE;
  return state;
}

void SdmmcModel::write(uint32_t offset, uint32_t value) {
  registers_[offset / 4] = value;
  switch (offset) {
    case SDMMC_ICR:
      if ((value & ~(is_f7() ? 0x004005FFu : 0x1FE00FFFu)) != 0) note("a reserved bit of ICR");
      flags_ &= ~value;
      break;
    case SDMMC_CMD: start_command(value); break;
    case SDMMC_DCTRL:
      if ((value & H7_DCTRL_FIFORST) != 0 && !is_f7()) fifo_.clear();
      if ((value & SDMMC_DCTRL_DTEN) == 0) {
        data_active_ = false;
        fifo_.clear();
      } else if (is_f7()) {
        start_data();
      } else {
        note("DTEN on an H7: CMDTRANS starts the data path");
      }
      break;
    case SDMMC_FIFO:
      if (fifo_.size() == fifo_words()) note("the FIFO was written when it was full");
      fifo_.push_back(value);
      break;
    default: break;
  }
}

void SdmmcModel::start_command(uint32_t value) {
  const bool enabled = (value & (is_f7() ? F7_CMD_CPSMEN : H7_CMD_CPSMEN)) != 0;
  if (!enabled || registers_[SDMMC_POWER / 4] != SDMMC_POWER_ON || clock_hz() == 0)
    return note("a command without power");
  if (clock_hz() > (card_->is_identified() ? 25'000'000u : 400'000u)) note("the clock is too fast");
  if ((flags_ & (SDMMC_STA_CMDREND | SDMMC_STA_CMDSENT)) != 0) note("flags of the last command are there");
  const uint32_t index = value & 0x3F;
  if (!is_f7() && index == 12 && (value & H7_CMD_CMDSTOP) == 0) note("CMD12 without CMDSTOP");
  const CardModel::Response response = card_->command(index, registers_[SDMMC_ARG / 4]);
  response_arrives(index, is_f7() ? value >> 6 & 3 : value >> 8 & 3, response);
  if (index == 12) data_active_ = false;
  const bool moves = response.kind == CardModel::Response::Kind::ok && (card_->is_sending() || card_->is_receiving());
  if (!is_f7() && (value & H7_CMD_CMDTRANS) != 0 && moves) start_data();
  if (card_->is_sending() && !data_active_) note("the card sends and the data path is off");
}

// F7: 1 short, 3 long. H7: 1 short, 2 short without checksum, 3 long. 0: none.
void SdmmcModel::response_arrives(uint32_t index, uint32_t waits, const CardModel::Response& response) {
  using Kind = CardModel::Response::Kind;
  later_ = 3;
  if (waits == 0) {
    later_flags_ = SDMMC_STA_CMDSENT;
    return;
  }
  if (response.kind == Kind::none) {
    later_flags_ = SDMMC_STA_CTIMEOUT;
    return;
  }
  if ((waits == 3) != (index == 2 || index == 9)) note("the wrong length of answer");
  registers_[SDMMC_RESPCMD / 4] = response.index;
  for (uint32_t i = 0; i < 4; ++i) registers_[SDMMC_RESP1 / 4 + i] = response.words[i];
  const bool unchecked = index == 41 && !(waits == 2);
  later_flags_ = response.kind == Kind::damaged || unchecked ? SDMMC_STA_CCRCFAIL : SDMMC_STA_CMDREND;
}

void SdmmcModel::start_data() {
  const uint32_t control = registers_[SDMMC_DCTRL / 4];
  if ((control >> 4 & 15) != 9) note("the block size is not 512");
  if (registers_[SDMMC_DTIMER / 4] == 0) note("no time for the data");
  const bool reads = (control & SDMMC_DCTRL_DTDIR_FROM_CARD) != 0;
  if (!reads && !card_->is_receiving()) note("data before the answer of a write");
  data_active_ = true;
  remaining_ = registers_[SDMMC_DLEN / 4];
  silence_ = 0;
  sent_words_ = 0;
}

void SdmmcModel::move_data() {
  if (!data_active_) return;
  if (is_wide() != card_->is_wide()) flags_ |= SDMMC_STA_DCRCFAIL;
  const bool reads = (registers_[SDMMC_DCTRL / 4] & SDMMC_DCTRL_DTDIR_FROM_CARD) != 0;
  if (remaining_ > 0) {
    const uint32_t position = card_->position();
    if (card_->faults.missing_blocks.count(position) != 0) {
      if (++silence_ > looks_until_timeout) flags_ |= SDMMC_STA_DTIMEOUT;
    } else if (reads && card_->is_sending()) {
      send_block();
    } else if (!reads) {
      take_block();
    }
  }
  if (remaining_ == 0 && fifo_.empty()) flags_ |= SDMMC_STA_DATAEND;
  if ((flags_ & (SDMMC_STA_DCRCFAIL | SDMMC_STA_DTIMEOUT)) != 0) data_active_ = false;
}

// Eight words of the card's block with every poll.
void SdmmcModel::send_block() {
  if (fifo_.size() + half_fifo > fifo_words()) return;
  const Block& block = card_->sent_block();
  for (uint32_t i = 0; i < half_fifo; ++i) {
    uint32_t word;
    std::memcpy(&word, block.data() + 4 * sent_words_++, 4);
    fifo_.push_back(word);
  }
  if (sent_words_ < 128) return;
  if (card_->faults.damaged_blocks.count(card_->position()) != 0) flags_ |= SDMMC_STA_DCRCFAIL;
  card_->block_sent();
  sent_words_ = 0;
  remaining_ -= 512;
}

void SdmmcModel::take_block() {
  static_assert(sizeof(Block) == 512, "the card's block");
  thread_local Block block;
  if (busy_ > 0) {
    --busy_;
    return;
  }
  while (!fifo_.empty() && sent_words_ < 128) {
    std::memcpy(block.data() + 4 * sent_words_++, &fifo_.front(), 4);
    fifo_.pop_front();
  }
  if (sent_words_ < 128) return;
  sent_words_ = 0;
  if (card_->faults.damaged_blocks.count(card_->position()) != 0) {
    flags_ |= SDMMC_STA_DCRCFAIL;
    return;
  }
  card_->receive_block(block);
  busy_ = card_->faults.busy_polls;
  remaining_ -= 512;
}

}  // namespace pmt::test
