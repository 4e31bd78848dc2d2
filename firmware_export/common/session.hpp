// Training on the board: model in flash, card, trainer and comparison put together.
#pragma once

#include "common/board.hpp"
#include "common/verify.hpp"

namespace pmt::firmware {

struct ModelImage {
  const uint8_t* bytes;
  size_t count;
};

class Session {
 public:
  // Opens the model and the card, copies the layers under training into the arena and sets the
  // trainer up in what is left of it. False, with the reason in the log, when one of them fails.
  bool open(const ModelImage& image, const char* card_name, const board::Memory& arena);

  int32_t steps() const { return card_.header().steps; }

  // Clean inference of the card's first samples, compared op by op.
  bool check_activations();
  // One training step, compared with the host's.
  bool step(int32_t index);
  bool save(const char* name, const char* name_aside);

  // Prints the use of memory and the verdict; the exit status of the program.
  int report();

  const Trainer& trainer() const { return trainer_; }

 private:
  struct StepReader {
    const Card* card;
    int32_t step;
  };
  static bool read_sample(void* context, int32_t index, int8_t* image, int32_t* label);

  bool open_trainer(const board::Memory& arena);
  bool read_memories();
  bool copy_layers(Arena& memory, int32_t* layers, LayerStorage* storage);
  bool fail(const char* what, const Status& status);
  void print_model() const;

  ModelImage image_ = {};
  Model model_;
  Card card_;
  Verify verify_;
  Trainer trainer_;
  TrainerOptions options_;
  size_t arena_bytes_ = 0;
  size_t arena_needed_ = 0;
};

}  // namespace pmt::firmware
