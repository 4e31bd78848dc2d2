// How long each op of a network takes, where and as inference runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/host_model.hpp"
#include "host/image_batches.hpp"

namespace pmt::host {

// Runs a model's ops one by one, each many times over, on the activations of real images: in the
// memory that inference gives them, on as many images at once as it takes, on one thread.
class Profiler {
 public:
  Profiler(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count);

  // Images that inference takes at once; the profile is of the first of them.
  int32_t images() const { return batches_.images(); }
  int32_t op_count() const { return model_->model().op_count(); }
  // Seconds an image of every op; the last op is timed as the logits that inference computes.
  std::vector<double> time_ops();
  double time_op(int32_t op);

 private:
  void start();
  void pass_cut();
  void run(int32_t op);
  double time(int32_t op);

  std::shared_ptr<HostModel> model_;
  ImageBatches batches_;
  std::vector<int8_t> input_;
  AlignedMemory memory_;
  ImageBatches::Memory activations_ = {};
};

// The speed that this machine could have if a forward were nothing but multiply-accumulates.
struct Peak {
  const char* instruction;  // of the loop
  double gmacs;             // 10^9 int8 multiply-accumulates a second, of all threads together
};

// Runs a loop that touches registers only, with the best exact dot product this CPU has, on a number
// of threads at once (0 = all). Takes some milliseconds; the best of several runs.
Peak measure_peak(int32_t threads);

}  // namespace pmt::host
