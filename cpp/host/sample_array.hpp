// Samples in memory, as the core reads them.
#pragma once

#include <cstring>

#include "core/base/sample_source.hpp"
#include "core/image/model.hpp"
#include "core/zo/loss.hpp"

namespace pmt::host {

// images int8 NHWC; labels, or null where there are none; targets [sample][class] that stand in for labels, or null.
struct SampleArray {
  const int8_t* images;
  const int64_t* labels;
  int32_t count;
  const float* targets = nullptr;
};

// Gives the core the samples of an array, from a first one on.
class SampleReader {
 public:
  SampleReader(const SampleArray& samples, const Model& model) : SampleReader(samples, element_count(model.input())) {}
  SampleReader(const SampleArray& samples, int32_t elements)
      : samples_(samples), elements_(static_cast<size_t>(elements)) {}

  void start_at(size_t first) { first_ = first; }
  SampleSource source() { return {this, read, samples_.targets}; }

 private:
  static bool read(void* context, int32_t index, int8_t* image, int32_t* label) {
    const SampleReader& reader = *static_cast<const SampleReader*>(context);
    const SampleArray& samples = reader.samples_;
    const size_t at = reader.first_ + static_cast<size_t>(index);
    std::memcpy(image, samples.images + at * reader.elements_, reader.elements_);
    *label = samples.labels != nullptr ? static_cast<int32_t>(samples.labels[at]) : no_label;
    return true;
  }

  SampleArray samples_;
  size_t elements_;
  size_t first_ = 0;
};

}  // namespace pmt::host
