#include "host/host_loss.hpp"

namespace pmt::host {

void HostLoss::begin(const SampleArray& samples) {
  samples_ = samples;
  failed_ = false;
  thrown_ = nullptr;
}

void HostLoss::rethrow() {
  std::exception_ptr thrown;
  std::swap(thrown, thrown_);
  if (thrown) std::rethrow_exception(thrown);
}

bool HostLoss::call(void* context, const float* logits, int32_t count, int32_t sample, int32_t* losses) {
  HostLoss& self = *static_cast<HostLoss*>(context);
  if (self.failed_) return false;
  try {
    self.loss_({&self.samples_, sample, logits, count}, losses);
    return true;
  } catch (...) {
    const std::lock_guard<std::mutex> lock(self.mutex_);
    if (!self.thrown_) self.thrown_ = std::current_exception();
    self.failed_ = true;
    return false;
  }
}

}  // namespace pmt::host
