// Compares what the board computes with what the host computed, and names the first difference.
#pragma once

#include "common/card.hpp"
#include "common/log.hpp"
#include "core/trainer.hpp"

namespace pmt::firmware {

class Verify {
 public:
  void open(const Model& model, const Card& card);

  // CRC-32 of an op's int8 output in a clean inference.
  void activation(int32_t inference, int32_t op, uint32_t crc32);
  void result(int32_t step, const StepResult& result);
  // The layers in ascending order, after the step.
  void parameters(int32_t step, int32_t index, const Layer& layer);
  void checkpoint(uint32_t crc32);
  // Anything that kept the program from going on.
  void failed(const char* what, const char* why);

  bool ok() const { return ok_; }
  // Prints the verdict; true when everything was compared and equal.
  bool report();

 private:
  const char* op_name(int32_t op) const;
  void differ(Line& line, const char* what, uint32_t device, uint32_t host);
  void compare_crc(const char* where, int32_t number, int32_t op, const char* what, uint32_t device, uint32_t host);
  void unreadable();

  const Model* model_ = nullptr;
  const Card* card_ = nullptr;
  bool ok_ = true;
  Line first_;  // the first difference
  int32_t activations_ = 0;
  int32_t steps_ = 0;
};

}  // namespace pmt::firmware
