// One layer as an int8 oneDNN primitive.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "layer.hpp"

// oneDNN has its own kernels for either type of the activations; u8 is the int8 value + 128.
enum class Activations { s8, u8 };

class Convolution {
 public:
  // Weights are brought into the layout oneDNN prefers, once. Throws dnnl::error where oneDNN has no
  // implementation.
  Convolution(const dnnl::engine& engine, const Layer& layer, Activations activations, int images);

  // Name of the implementation that oneDNN chose, for example jit_int8_1x1:avx2.
  std::string implementation() const { return implementation_; }
  void run(dnnl::stream& stream) const { primitive_.execute(stream, arguments_); }
  // Outputs of all images that are not `expected`, and the largest difference.
  struct Difference {
    int64_t values;
    int largest;
  };
  Difference compare(const Layer& layer) const;

 private:
  void fill_input(const Layer& layer);
  void set_weights(const dnnl::engine& engine, const Layer& layer, const dnnl::memory::desc& wanted);

  int offset_;  // of a stored activation from its int8 value
  int images_;
  std::string implementation_;
  dnnl::memory source_, weights_, bias_, destination_, source_zero_, destination_zero_, scratch_;
  dnnl::convolution_forward primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};
