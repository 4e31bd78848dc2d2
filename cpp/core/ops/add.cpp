// The sum of two tensors of one shape.
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

bool fits(const OpTensors& t) { return have_same_shape(*t.in[0], t.out) && have_same_shape(*t.in[1], t.out); }

void run(const Kernels& kernels, const OpTensors& t, const OpImages& images) {
  const TensorRecord &first = *t.in[0], &second = *t.in[1];
  const int32_t count = images.shape.out.height * images.shape.out.width * images.shape.out.channels;
  kernels.add({{images.input[0], images.input[1]},
               images.output,
               images.images,
               count,
               {images.input_stride[0], images.input_stride[1]},
               images.output_stride,
               {first.zero_point, second.zero_point},
               t.out.zero_point,
               {first.scale, second.scale},
               t.out.scale,
               t.op.clamp_min,
               t.op.clamp_max});
}

}  // namespace

const OpDefinition add_op = {2, false, true, false, fits, run, nullptr, nullptr};

}  // namespace pmt
