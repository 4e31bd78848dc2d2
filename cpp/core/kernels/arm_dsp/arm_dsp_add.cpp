#include "core/base/arithmetic.hpp"
#include "core/kernels/arm_dsp/arm_dsp.hpp"
#include "core/kernels/dsp.hpp"

namespace pmt::arm_dsp {
namespace {

using namespace dsp;

struct Operand {
  const int8_t* values;
  int32_t zero;
  float scale;

  float real(int32_t i) const { return static_cast<float>(values[i] - zero) * scale; }
};

template <bool whole>
void add_image(const AddArgs& args, const Operand& a, const Operand& b, int8_t* output) {
  const float scale = args.output_scale;
  const int32_t zero = args.output_zero, low = args.clamp_min, high = args.clamp_max;
#pragma GCC unroll 4
  for (int32_t i = 0; i < args.count; ++i) {
    const int32_t sum = add_saturating(round_even((a.real(i) + b.real(i)) / scale), zero);
    output[i] = static_cast<int8_t>(whole ? saturate_int8(sum) : clamp(sum, low, high));
  }
}

}  // namespace

void add(const AddArgs& args) {
  const bool whole = args.clamp_min == -128 && args.clamp_max == 127;
  for (int32_t i = 0; i < args.images; ++i) {
    const Operand a = {args.input[0] + i * args.input_stride[0], args.input_zero[0], args.input_scale[0]};
    const Operand b = {args.input[1] + i * args.input_stride[1], args.input_zero[1], args.input_scale[1]};
    int8_t* output = args.output + i * args.output_stride;
    whole ? add_image<true>(args, a, b, output) : add_image<false>(args, a, b, output);
  }
}

}  // namespace pmt::arm_dsp
