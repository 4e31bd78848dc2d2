// The samples of a learner: where their frames are kept, their labels, and what each is for.
#pragma once

#include "core/base/arena.hpp"
#include "core/base/status.hpp"
#include "core/base/words.hpp"
#include "core/image/model.hpp"

namespace pmt {

// Where frames wait, by an index from 0: SDRAM, a card, flash, a host. They are int8 inputs of the network, or, where
// an input stage is chosen, the sensor's uint8 pixels. A phase reads them again and again.
struct FrameStore {
  void* context;
  // False: it failed.
  bool (*read)(void* context, int32_t index, void* frame);
  // Null where frames are put there by others, before they are observed.
  bool (*write)(void* context, int32_t index, const void* frame);
};

// The purpose of a sample. Automatic: a fifth of the labeled ones is held out, of every class about a fifth.
PMT_WORDS(Role, train, hold_out, automatic)

// Whether labels are 0 and 1, the targets of one output, whose sign predicts them.
inline bool is_binary(const Model& model) { return model.classes() == 1; }
inline int32_t label_count(const Model& model) { return is_binary(model) ? 2 : model.classes(); }

struct SampleRecord {
  uint32_t crc32;   // of the frame
  int32_t label;    // no_label: none
  int32_t copy_of;  // the first sample with an equal frame; itself where there is none
  uint8_t held_out;
  uint8_t unused[3];
};

class LearnerSamples {
 public:
  void take(int32_t capacity, Arena& arena);
  // `of_sensor`: frames are the sensor's, which the model's input stage turns into inputs.
  void open(const FrameStore& frames, const Model& model, bool of_sensor, int32_t most_held_out);
  void clear() { count_ = held_out_ = 0; }

  // Takes a frame in. Copies, frames of equal bytes, have the role of the first.
  Status add(const void* frame, int32_t label, Role role);
  // Reads a frame, compares it with the one that was taken in, and writes the network's input. `memory` is what the
  // stage takes, see stage_memory(): apart from the input, or beginning with it.
  Status read(int32_t sample, int8_t* input, uint8_t* memory) const;
  Status read(int32_t sample, int8_t* input) const { return read(sample, input, reinterpret_cast<uint8_t*>(input)); }
  // Memory of the stage; 0 where frames are inputs.
  size_t stage_bytes() const;

  int32_t capacity() const { return capacity_; }
  int32_t count() const { return count_; }
  int32_t held_out() const { return held_out_; }  // without copies
  const SampleRecord& operator[](int32_t sample) const { return records_[sample]; }
  bool is_copy(int32_t sample) const { return records_[sample].copy_of != sample; }

  // The next sample from `sample` on that is: held out, trained on without labels, trained on with them, of these what
  // judges an alignment. Only the head's are with copies. count() where there is none.
  enum class Use { held_out, alignment, head, judgment };
  int32_t next(int32_t sample, Use use) const;
  // How many there are, and which, where there is a list to write.
  int32_t count(Use use, int32_t* list = nullptr) const;
  // Whether samples to train on have different labels.
  bool has_classes() const;

 private:
  Status read_frame(int32_t sample, void* frame) const;
  bool is_first_label(int32_t sample) const;

  FrameStore frames_ = {};
  const Model* model_ = nullptr;
  SampleRecord* records_ = nullptr;
  int32_t capacity_ = 0, most_held_out_ = 0;
  size_t frame_bytes_ = 0;
  bool of_sensor_ = false;
  int32_t count_ = 0, held_out_ = 0;
};

}  // namespace pmt
