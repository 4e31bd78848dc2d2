// One convolution or fully connected op with random data, for a kernel and for its definition.
#pragma once

#include <vector>

#include "reference/tensors.hpp"
#include "tests/aligned_bytes.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

struct LinearShape {
  OpKind kind;
  Shape in;
  int32_t out_channels;
  Window window;
  int32_t pad_bottom, pad_right;
};

struct LinearCase {
  LinearShape shape;
  Shape out;
  int32_t input_zero;
  std::vector<int8_t> input, weights;  // input: up to the last byte of the last image, no further
  reference::Requantization to;
  Batch batch = {1, 0, 0};
};

Shape output_shape(const LinearShape& shape);
int64_t weight_count(const LinearShape& shape);

// Scales that spread the outputs over int8. In every other layer one channel in eight is dead: its weight
// scale is 3.9e-9 and its bias stands at a limit of int32.
LinearCase random_linear_case(RandomSource& random, const LinearShape& shape);

bool has_dead_channel(const LinearCase& linear);

// The same with other, random images.
LinearCase with_images(RandomSource& random, LinearCase linear, const Batch& batch);
// Several images of a case, whose inputs and outputs lie `apart` bytes apart.
LinearCase with_images(RandomSource& random, const LinearCase& linear, int32_t images, int32_t apart);

// The same with several images, which may lie apart or (a stride of 0) share their input.
LinearCase random_linear_batch(RandomSource& random, const LinearShape& shape);

// The exact sums of one image, before the requantization.
reference::Sums exact_sums(const LinearCase& linear, const int8_t* image);

// The outputs of all images, one after another.
std::vector<int8_t> expected_output(const LinearCase& linear);

// Runs the kernel over ranges of `tile` output channels; kernels that pack compute all at once.
// Checks that nothing between the images is written.
std::vector<int8_t> kernel_output(const Kernels& kernels, const LinearCase& linear, int32_t tile);

// Kernels that compute ranges of channels.
inline const std::vector<const Kernels*> kernels_of_ranges = {&portable_kernels(), &arm_dsp_kernels()};

// Those of all images, one after another, from the kernel and from exact sums. For layers whose
// window covers their input.
std::vector<float> kernel_logits(const Kernels& kernels, const LinearCase& linear);
std::vector<float> expected_logits(const LinearCase& linear);

// Checks that all tested kernels give the output of the definition, and those of ranges on tiles of these sizes.
void check_output(const LinearCase& linear, const std::vector<int32_t>& tiles);

OpShape op_shape(const LinearCase& linear);

// In an exactly sized buffer of the kernels' alignment.
AlignedBytes packed_weights(const Kernels& kernels, const LinearCase& linear, const int8_t* signs, int32_t mu);

// Checks for all tested kernels that weights perturbed while packing are those perturbed before; some stay as they are.
void check_perturbed(RandomSource& random, const LinearCase& linear);

// Values in row-major order under a shape.
template <typename Tensor, typename Value>
Tensor tensor_of(const std::vector<Value>& values, const typename Tensor::shape_type& shape) {
  Tensor tensor(shape);
  std::copy(values.begin(), values.end(), tensor.begin());
  return tensor;
}

reference::Image image_of(const int8_t* values, const Shape& shape);
reference::Image image_of(const std::vector<int8_t>& values, const Shape& shape);
std::vector<int8_t> values_of(const reference::Image& image);

}  // namespace pmt::tests
