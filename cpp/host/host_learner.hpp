// A learner with its memory, its frames, and a file for its states.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/learner/learner.hpp"
#include "host/host_model.hpp"

namespace pmt::host {

struct HostLearnerSetup {
  std::vector<uint8_t> image;
  std::vector<ChannelStatistics> clean;  // none: no alignment
  AlignedWeights weights;
  bool chooses_input;
  int32_t samples, held_out;
  bool keeps_confirmed;
  bool keeps_activations;
  std::string storage;  // a file of state_file_bytes(); empty: none
  bool trial_goes_on;   // see LearnerSetup
  TrainerOptions options;
  std::vector<std::vector<int32_t>> blocks;  // of layers, one of which is trained; none: there are no epochs
  int32_t batch, epochs;
  float learning_rate, final_learning_rate;
};

// Bytes of a file of states.
size_t state_file_bytes(const HostLearnerSetup& setup);

// A file of states that could not be opened, read or written.
struct StorageError {
  int number;  // errno
  std::string path;
};

class HostLearner {
 public:
  explicit HostLearner(HostLearnerSetup setup);
  HostLearner(const HostLearner&) = delete;
  HostLearner& operator=(const HostLearner&) = delete;

  Learner& learner() { return learner_; }
  const HostLearnerSetup& setup() const { return setup_; }
  // Throws unless a call of the learner was ok: a StorageError if it was the file, std::invalid_argument if a state in
  // it is unfit, else a StatusError.
  void check(const Status& status) const;
  // Whether the file has fewer bytes than states take: it was made whole.
  bool is_cut_off();
  // The image with the parameters of the state in force.
  std::vector<uint8_t> image_in_force() const;

 private:
  void open_storage();
  std::streamoff file_bytes();
  bool is_blank_throughout(char byte);
  void refuse_foreign_file();
  void refuse_state(const std::string& reason) const;
  static bool read_slot(void* context, int32_t slot, size_t at, void* to, size_t count);
  static bool write_slot(void* context, int32_t slot, size_t at, const void* from, size_t count);
  bool is_done();
  static bool erase_slot(void* context, int32_t slot);
  LearnerSetup core_setup();

  HostLearnerSetup setup_;
  std::vector<TrainedLayers> blocks_;
  AlignedMemory image_, memory_, external_;
  std::vector<uint8_t> frames_;
  size_t frame_bytes_ = 0;
  std::fstream file_;
  int storage_error_ = 0;
  StateStorage storage_ = {};
  Learner learner_;
};

// A learner on a device: its memory, and the ops that stream.
struct DeviceLearner {
  LearnerMemory memory;
  std::vector<StreamedOps> streams;
};
DeviceLearner plan_learner(const HostLearnerSetup& setup, const Kernels& kernels);

}  // namespace pmt::host
