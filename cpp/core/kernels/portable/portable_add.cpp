#include "core/base/arithmetic.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt::portable {
namespace {

void add_image(const AddArgs& args, const int8_t* a, const int8_t* b, int8_t* output) {
  for (int32_t i = 0; i < args.count; ++i) {
    const float first = static_cast<float>(a[i] - args.input_zero[0]) * args.input_scale[0];
    const float second = static_cast<float>(b[i] - args.input_zero[1]) * args.input_scale[1];
    const int32_t sum = round_saturating((first + second) / args.output_scale) + args.output_zero;
    output[i] = static_cast<int8_t>(clamp(sum, args.clamp_min, args.clamp_max));
  }
}

}  // namespace

void add(const AddArgs& args) {
  for (int32_t i = 0; i < args.images; ++i) {
    add_image(args, args.input[0] + i * args.input_stride[0], args.input[1] + i * args.input_stride[1],
              args.output + i * args.output_stride);
  }
}

}  // namespace pmt::portable
