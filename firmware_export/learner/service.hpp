// A learner that a PC talks to over the serial line, as `pmt stream` does: see docs/guides/learner.md for the requests.
#pragma once

#include "common/board.hpp"
#include "common/model_image.hpp"
#include "core/learner/learner.hpp"

namespace pmt::firmware {

// What an export has chosen.
struct ServiceSetup {
  ModelImage image;
  const ChannelStatistics* clean;
  int32_t clean_count;
  AlignedWeights weights;
  const StreamedOps* streams;
  int32_t stream_count;
  bool chooses_input;
  int32_t samples, held_out;
  bool keeps_confirmed;
  bool frames_on_host;  // else they stand in the arena, behind the learner's memory
  size_t learner_bytes;
  uint8_t* external;  // for activations; null: none
  size_t external_bytes;
  // Where states outlive a reset; null where there is no room for two of that size.
  const StateStorage* (*open_states)(size_t state_bytes);
  EpochSetup epochs;
};

class Service {
 public:
  // False, with the reason printed, where the learner cannot be opened.
  bool open(const ServiceSetup& setup, const board::Memory& arena);
  // Answers requests until one ends the program.
  void serve();
  // Prints the use of memory.
  void report() const;

 private:
  struct Request {
    uint8_t start, command, option, unused;
    int32_t argument;
  };
  static_assert(sizeof(Request) == 8);

  bool receive(Request* request);
  bool answer(const Request& request);
  void reply(const Status& status) const;
  void reply_prediction();
  void reply_scores() const;
  void reply_force() const;
  void reply_run(const Request& request);
  const void* observed_frame();
  static bool read_frame(void* context, int32_t index, void* frame);
  static bool write_frame(void* context, int32_t index, const void* frame);

  bool chooses_input_ = false, frames_on_host_ = false;
  board::Memory arena_ = {};
  uint8_t* frames_ = nullptr;
  size_t frame_bytes_ = 0;   // of the network's input
  size_t sensor_bytes_ = 0;  // of a frame of the input stage; 0: the host sends inputs
  size_t kept_bytes_ = 0;    // of a sample's frame
  Learner learner_;
};

}  // namespace pmt::firmware
