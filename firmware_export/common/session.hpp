// Training on the board: model in flash, card, trainer and comparison put together.
#pragma once

#include "common/board.hpp"
#include "common/card_slots.hpp"
#include "common/model_image.hpp"
#include "common/verify.hpp"

namespace pmt::firmware {

// One worker that keeps the board's watchdog fed: between the tasks of a step, and between queries.
Executor watched_executor();

class Session {
 public:
  // Opens the model and the card. False, with the reason in the log, where one fails; so do the functions below.
  bool open_card(const ModelImage& image);
  // With these opens the rest: copies the layers under training into the arena and sets the
  // trainer up in what is left of it.
  bool open(const ModelImage& image, const board::Memory& arena);

  // Clean inference of the card's first samples, compared op by op. Before resume().
  bool check_activations();
  // Goes back to the newest checkpoint of the card, if there is one.
  bool resume();

  bool finished() const { return next_ >= card_.header().steps; }
  // The next training step, compared with the host's, and a checkpoint where one is due.
  bool step();

  // Prints the use of memory and the verdict; the exit status of the program.
  int report();

  const Trainer& trainer() const { return trainer_; }
  const Model& model() const { return model_; }
  const Card& card() const { return card_; }
  const TrainerOptions& options() const { return options_; }
  // Logs why the session cannot go on. One copy: compilers put it into each of its callers, which costs flash.
  __attribute__((noinline)) bool fail(const char* what, const char* why, int32_t op = -1);
  bool fail(const char* what, const Status& status);

 private:
  static StatePart checkpoint_part(const void* context, int32_t index);

  bool open_trainer(const board::Memory& arena);
  bool read_setup(Arena& memory, TrainerSetup* setup);
  bool read_surprisal();
  bool copy_layers(Arena& memory, int32_t* layers, LayerStorage* storage);
  bool train(int32_t index);
  void report_arena();
  bool save();
  StateParts checkpoint() const { return {this, checkpoint_part}; }
  bool expected_values_were_read();

  Model model_;
  Storage storage_;
  Card card_;
  CardSlots places_;
  StateSlots slots_;
  Verify verify_;
  Trainer trainer_;
  TrainerOptions options_;
  int32_t next_ = 0;  // step
  board::Memory arena_ = {};
  size_t arena_needed_ = 0;
  bool trained_ = false;  // a step or more since the start
};

}  // namespace pmt::firmware
