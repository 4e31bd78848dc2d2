// Selection of the block to train, on the board: each candidate is trained for the card's steps from the weights
// in flash, scored on samples of the card that the steps do not use, and compared with the host's score.
#pragma once

#include "common/session.hpp"
#include "core/train/selection.hpp"

namespace pmt::firmware {

// Written by `pmt export --select`, see model/selection.hpp.
struct SelectionTask {
  struct Candidate {
    const char* name;
    const int32_t* layers;  // op indices, ascending
    int32_t layer_count;
    CandidateScore expected;
    const StreamedOps* streams;  // while it is trained, ascending
    int32_t stream_count;
  };
  const Candidate* candidates;
  int32_t count;
  int32_t first_held_out;  // sample of the card
  int32_t held_out;
};

class BlockSelection {
 public:
  // With the model and the card of a session, which trains afterwards. False, with the reason in the log, where
  // something fails; so do the functions below.
  bool open(Session& session, const ModelImage& image, const board::Memory& arena, const SelectionTask& task);

  bool finished() const { return next_ >= task_->count; }
  // Trains and scores the next candidate; only its score is kept.
  bool try_next();

  // The candidate with the smallest loss, the first of equals; false where it or a score is not the host's.
  bool report() const;

 private:
  static Status begin(void* context, uint32_t step, float* learning_rate);
  static bool read_held_out(void* context, int32_t index, int8_t* image, int32_t* label);
  static Status save(void* context, const Layer& layer);
  static Status restore(void* context, const Layer& layer);
  Status run(const SelectionTask::Candidate& candidate, CandidateScore* score);

  const SelectionTask* task_ = nullptr;
  Session* session_ = nullptr;
  board::Memory arena_ = {};
  int32_t next_ = 0;
  int32_t best_ = 0;
  int64_t least_loss_ = 0;
  int32_t differences_ = 0;
};

}  // namespace pmt::firmware
