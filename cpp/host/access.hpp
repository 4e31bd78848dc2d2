// Who uses a model at present: any number of calls that read it, or one that runs alone. Nobody waits, for
// the other call may be this thread's own, which a signal handler interrupted: who cannot run is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace pmt::host {

// The bindings turn it into pmt.errors.ModelBusyError.
class BusyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Access {
 public:
  // For as long as they live. Both throw BusyError where the model is in use already.
  class Shared {
   public:
    explicit Shared(Access& access) : access_(access) {
      int32_t users = access_.users_.load();
      do {
        if (users < 0) {
          throw BusyError(
              "the model is being trained, measured or changed by another call; wait until that returns, or read a "
              "Model.copy() made before it");
        }
      } while (!access_.users_.compare_exchange_weak(users, users + 1));
    }
    ~Shared() { --access_.users_; }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    Access& access_;
  };

  class Exclusive {
   public:
    explicit Exclusive(Access& access) : access_(access) {
      int32_t nobody = 0;
      if (access_.users_.compare_exchange_strong(nobody, alone)) return;
      throw BusyError(
          "the model is in use by another call, and a call that trains, measures or changes it runs alone; wait until "
          "the other returns, or give each thread a Model.copy()");
    }
    ~Exclusive() { access_.users_ = 0; }
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    Access& access_;
  };

 private:
  static constexpr int32_t alone = -1;
  std::atomic<int32_t> users_{0};
};

}  // namespace pmt::host
