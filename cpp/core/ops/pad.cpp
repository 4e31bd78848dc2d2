// Rows and columns of the zero point around a tensor.
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

bool fits(const OpTensors& t) {
  const TensorRecord& in = *t.in[0];
  return padding_is_valid(t.op, largest_side, largest_side) && in.channels == t.out.channels &&
         in.height + t.op.pad_top + t.op.pad_bottom == t.out.height &&
         in.width + t.op.pad_left + t.op.pad_right == t.out.width;
}

void pad_image(const OpTensors& t, const int8_t* input, int8_t* output) {
  const TensorRecord& in = *t.in[0];
  __builtin_memset(output, t.out.zero_point, static_cast<uint32_t>(element_count(t.out)));
  for (int32_t y = 0; y < in.height; ++y) {
    const int32_t start = ((y + t.op.pad_top) * t.out.width + t.op.pad_left) * t.out.channels;
    const int32_t row = in.width * in.channels;
    __builtin_memcpy(output + start, input + y * row, static_cast<uint32_t>(row));
  }
}

void run(const Kernels&, const OpTensors& t, const OpImages& images) {
  copy_images(images, [&](const int8_t* input, int8_t* output) { pad_image(t, input, output); });
}

}  // namespace

const OpDefinition pad_op = {1, false, false, true, fits, run, nullptr, nullptr};

}  // namespace pmt
