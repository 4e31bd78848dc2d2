// Compares what the board computes with what the host computed, and names the first difference: the
// step or the inference, the layer, and which of its quantities.
#pragma once

#include "common/card.hpp"
#include "common/log.hpp"
#include "core/train/trainer.hpp"

namespace pmt::firmware {

class Verify {
 public:
  void open(const Model& model, const Card& card);
  // The steps before `step` were compared, or not, before a reset.
  void resume(int32_t step) { first_step_ = step; }

  // CRC-32 of an op's int8 output in a clean inference.
  void activation(int32_t inference, int32_t op, uint32_t crc32);
  void result(int32_t step, const StepResult& result);
  // The layers in ascending order, after the step.
  void parameters(int32_t step, int32_t index, const Layer& layer);
  // Anything that kept the program from going on.
  void failed(const char* what, const char* why);
  void failed(const CardFault& fault);

  bool ok() const { return ok_; }
  // Prints what was compared and the verdict; true when it was everything, and equal.
  bool report();

 private:
  struct Tally {
    int32_t compared = 0;
    int32_t different = 0;
    void print(const char* what) const;
  };

  const char* op_name(int32_t op) const;
  void compare_crc(const char* where, int32_t number, int32_t op, const char* what, uint32_t device, uint32_t host,
                   Tally* tally);
  bool is_complete() const;

  const Model* model_ = nullptr;
  const Card* card_ = nullptr;
  bool ok_ = true;
  Line first_;  // the first difference
  int32_t first_step_ = 0;
  Tally activations_, results_, parameters_;
};

}  // namespace pmt::firmware
