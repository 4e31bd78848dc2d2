// A loss of the caller's own behind the core's plain function pointer: what it throws waits here until the core has
// left the step.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>

#include "host/sample_array.hpp"

namespace pmt::host {

// Rows of logits, all of one of the samples of a step.
struct LogitBlock {
  const SampleArray* samples;
  int32_t sample;
  const float* logits;
  int32_t rows;
};

// Writes a fixed-point loss for each row. Threads call it at once; it may throw.
using OwnLoss = std::function<void(const LogitBlock& block, int32_t* losses)>;

class HostLoss {
 public:
  explicit HostLoss(OwnLoss loss) : loss_(std::move(loss)) {}

  bool empty() const { return loss_ == nullptr; }
  LossFunction function() { return {this, call}; }

  // Before a step on these samples.
  void begin(const SampleArray& samples);
  // Throws what the loss threw first, if it threw.
  void rethrow();

 private:
  static bool call(void* context, const float* logits, int32_t count, int32_t sample, int32_t* losses);

  OwnLoss loss_;
  SampleArray samples_ = {};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace pmt::host
