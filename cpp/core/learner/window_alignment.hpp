// Alignment of the windows of one layer after another, on whatever forwards reach their inputs.
#pragma once

#include "core/align/covariance_alignment.hpp"
#include "core/align/shrinkage.hpp"
#include "core/base/linked/reliability.hpp"

namespace pmt {

class WindowAlignment {
 public:
  // Floats of the statistics of clean images that belong to a layer: means of the channels of its input, then the
  // values of its groups. None of a layer without windows.
  static int32_t clean_floats(const Model& model, int32_t op);
  // `clean`: of all layers with windows, one after another.
  void start(const float* clean) {
    clean_ = clean;
    strength_ = 0.0f;
  }

  // For the next layer, which the other calls name again. The memory is free behind its last align_group().
  // `tells_noise`: whether shrink() tells the strength of reliability by this layer.
  void take(const Model& model, int32_t op, bool tells_noise, Arena& arena);
  // One group of images after another, sample by sample.
  void begin(const Model& model, int32_t op, int32_t group);
  void add(const int8_t* input) { sums_.add(input, 0); }
  void conclude(const Model& model, int32_t op, int32_t group, int32_t images);
  // After all of them.
  void shrink(const Model& model, int32_t op, const ImageGroups& images);
  float strength() const { return strength_; }
  // Corrects the weights of one group of channels after another. False: that was the last one of the layer.
  bool align_group(const Model& model, int32_t op, const WritableLayer& layer);

 private:
  int32_t group_ = 0;
  const float* clean_ = nullptr;  // of the layer
  WindowSums sums_;
  WindowScatter scatter_;
  float* means_ = nullptr;     // [group of images][channel]; in the end of all images
  float* values_ = nullptr;    // [values of all groups of channels], of all images
  float* squares_ = nullptr;   // the same
  float* of_group_ = nullptr;  // the same, of a group of images; null where the layer does not tell noise
  uint8_t* scratch_ = nullptr;
  float shares_[ImageGroups::usual] = {};  // of noise, in each group of images
  float strength_ = 0.0f;
};

}  // namespace pmt
