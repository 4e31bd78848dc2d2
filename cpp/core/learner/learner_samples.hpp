// The samples of a learner: where their frames are kept, their labels, and what each is for.
#pragma once

#include "core/base/arena.hpp"
#include "core/base/status.hpp"
#include "core/base/words.hpp"

namespace pmt {

// Where frames wait, int8 inputs of the network, by an index from 0: SDRAM, a card, flash, a host. A phase reads them
// again and again.
struct FrameStore {
  void* context;
  // False: it failed.
  bool (*read)(void* context, int32_t index, int8_t* frame);
  // Null where frames are put there by others, before they are observed.
  bool (*write)(void* context, int32_t index, const int8_t* frame);
};

// What a sample is for. Automatic: every fifth labeled one is held out.
PMT_WORDS(Role, train, hold_out, automatic)

constexpr int32_t head_folds = 3;

struct SampleRecord {
  uint32_t crc32;   // of the frame
  int32_t label;    // no_label: none
  int32_t copy_of;  // the first sample with an equal frame; itself where there is none
  uint8_t held_out, fold;
  uint16_t unused;
};

class LearnerSamples {
 public:
  void take(int32_t capacity, Arena& arena);
  void open(const FrameStore& frames, int32_t frame_bytes, int32_t most_held_out);
  void clear() { count_ = held_out_ = 0; }

  // Takes a frame in. Copies, frames of equal bytes, have the role of the first.
  Status add(const int8_t* frame, int32_t label, Role role);
  // Reads a frame and compares it with the one that was taken in.
  Status read(int32_t sample, int8_t* frame) const;

  int32_t capacity() const { return capacity_; }
  int32_t count() const { return count_; }
  int32_t held_out() const { return held_out_; }  // without copies
  const SampleRecord& operator[](int32_t sample) const { return records_[sample]; }
  bool is_copy(int32_t sample) const { return records_[sample].copy_of != sample; }

  // The next sample from `sample` on that is: held out, trained on without labels, trained on with them. The first two
  // leave out copies. count() where there is none.
  enum class Use { held_out, alignment, head };
  int32_t next(int32_t sample, Use use) const;
  int32_t count(Use use) const;

 private:
  uint8_t fold_of(int32_t label) const;

  FrameStore frames_ = {};
  SampleRecord* records_ = nullptr;
  int32_t capacity_ = 0, frame_bytes_ = 0, most_held_out_ = 0;
  int32_t count_ = 0, held_out_ = 0;
};

}  // namespace pmt
