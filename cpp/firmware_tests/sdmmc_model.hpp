// An STM32's SDMMC peripheral, register by register, with a card behind it. It notes every use that the
// reference manuals forbid.
#pragma once

#include <deque>
#include <string>

#include "card_model.hpp"
#include "drivers/stm32/sdmmc.hpp"
#include "simulated_bus.hpp"

namespace pmt::test {

class SdmmcModel : public Peripheral {
 public:
  SdmmcModel(const stm32::Sdmmc::Setup& setup, CardModel* card) : setup_(setup), card_(card) {}

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

  std::string problems;  // empty while the driver behaves
  uint32_t clock_hz() const;

 private:
  bool is_f7() const { return setup_.generation == stm32::SdmmcGeneration::f7; }
  bool is_wide() const;
  void start_command(uint32_t value);
  void response_arrives(uint32_t index, uint32_t waits, const CardModel::Response& response);
  void start_data();
  void move_data();
  void send_block();
  void take_block();
  void note(const std::string& problem) { problems += problem + "; "; }
  uint32_t fifo_words() const { return is_f7() ? 32 : 16; }

  stm32::Sdmmc::Setup setup_;
  CardModel* card_;
  uint32_t registers_[64] = {};
  uint32_t flags_ = 0;        // of STA, those that stay
  uint32_t later_flags_ = 0;  // arrive with the next poll but one
  int32_t later_ = 0;
  bool data_active_ = false;
  uint32_t remaining_ = 0;   // bytes between card and controller
  uint32_t silence_ = 0;     // polls without data
  uint32_t sent_words_ = 0;  // of the card's block
  uint32_t busy_ = 0;        // polls until the card takes the next block
  std::deque<uint32_t> fifo_;
};

}  // namespace pmt::test
