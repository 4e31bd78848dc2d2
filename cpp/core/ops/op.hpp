// An op: what it asks of its tensors, and how it runs. Each has its definition in a file of its own.
#pragma once

#include "core/base/op_record.hpp"
#include "core/kernels/table.hpp"

namespace pmt {

// An op and the tensors that it reads and writes.
struct OpTensors {
  const OpRecord& op;
  const TensorRecord* in[2];  // the second is null where an op reads one
  const TensorRecord& out;
};

// The tensors of one op for a batch of images, one after another. A stride of 0: all images share
// that input. `shape` is the op's, or that of some rows of it.
struct OpImages {
  int32_t images;
  const int8_t* input[2];
  int32_t input_stride[2];
  int8_t* output;
  int32_t output_stride;
  OpShape shape;
};

struct OpDefinition {
  int32_t inputs;
  bool has_window;          // that slides over the input; the record of another op says 1 x 1
  bool streams_rows;        // some rows of the output take some rows of the inputs: those of the window, or the same
  bool keeps_quantization;  // input and output have one
  // Whether the shapes and the window fit one another.
  bool (*geometry_is_valid)(const OpTensors&);
  // Null for a layer.
  void (*run)(const Kernels&, const OpTensors&, const OpImages&);
  // Products that a layer sums for one value of its output, which are the weights of an output channel; null for
  // others.
  int64_t (*terms)(const OpTensors&);
  void (*Kernels::*kernel)(const LinearArgs&);
};

// Null for a kind that does not exist, or is not linked.
const OpDefinition* definition_of(OpKind kind);

int32_t element_count(const TensorRecord& tensor);
bool have_same_quantization(const TensorRecord& a, const TensorRecord& b);
bool have_same_shape(const TensorRecord& a, const TensorRecord& b);

// Rules that definitions share.
bool padding_is_valid(const OpRecord& op, int32_t limit_h, int32_t limit_w);
bool window_fits(const OpTensors& tensors);

Window window_of(const OpRecord& op);
Batch batch_of(const OpImages& images);

// Calls copy(input, output) for every image of an op that reads one input.
template <typename Copy>
void copy_images(const OpImages& images, Copy copy) {
  for (int32_t i = 0; i < images.images; ++i) {
    copy(images.input[0] + i * images.input_stride[0], images.output + i * images.output_stride);
  }
}

}  // namespace pmt
