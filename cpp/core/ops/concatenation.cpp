// The channels of a tensor, and behind them those of another: each in the quantization of the output.
#include "core/base/arithmetic.hpp"
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

bool fits(const OpTensors& t) {
  for (const TensorRecord* in : t.in) {
    if (in->height != t.out.height || in->width != t.out.width) return false;
  }
  return t.in[0]->channels + t.in[1]->channels == t.out.channels;
}

// Values of one tensor that follow one another, with the output's quantization.
class Requantized {
 public:
  Requantized(const TensorRecord& in, const OpTensors& t)
      : in_(in),
        out_(t.out),
        op_(t.op),
        ratio_(in.scale / t.out.scale),
        copies_(have_same_quantization(in, t.out) && t.op.clamp_min == -128 && t.op.clamp_max == 127) {}

  void write(const int8_t* values, int8_t* output) const {
    if (copies_) {
      __builtin_memcpy(output, values, static_cast<uint32_t>(in_.channels));
      return;
    }
    const auto zero = static_cast<float>(in_.zero_point);
    for (int32_t c = 0; c < in_.channels; ++c) {
      const int32_t steps = round_saturating((static_cast<float>(values[c]) - zero) * ratio_);
      output[c] = static_cast<int8_t>(clamp(steps + out_.zero_point, op_.clamp_min, op_.clamp_max));
    }
  }

 private:
  const TensorRecord& in_;
  const TensorRecord& out_;
  const OpRecord& op_;
  float ratio_;
  bool copies_;
};

void run(const Kernels&, const OpTensors& t, const OpImages& images) {
  const int32_t positions = images.shape.out.height * images.shape.out.width;
  int32_t first = 0;
  for (int k = 0; k < 2; ++k) {
    const int32_t channels = t.in[k]->channels;
    const Requantized part(*t.in[k], t);
    for (int32_t i = 0; i < images.images; ++i) {
      const int8_t* input = images.input[k] + i * images.input_stride[k];
      int8_t* output = images.output + i * images.output_stride + first;
      for (int32_t p = 0; p < positions; ++p) part.write(input + p * channels, output + p * t.out.channels);
    }
    first += channels;
  }
}

}  // namespace

const OpDefinition concatenation_op = {2, false, true, false, fits, run, nullptr, nullptr};

}  // namespace pmt
