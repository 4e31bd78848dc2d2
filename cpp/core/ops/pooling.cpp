// Averages and maxima of a window, whose padding is not counted, and the mean over height and width.
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

bool pool_fits(const OpTensors& t) { return window_fits(t) && t.in[0]->channels == t.out.channels; }

// The sum of 255 * positions stays below 2^31.
bool mean_fits(const OpTensors& t) {
  const int64_t positions = static_cast<int64_t>(t.in[0]->height) * t.in[0]->width;
  return t.out.height == 1 && t.out.width == 1 && t.in[0]->channels == t.out.channels && positions <= INT32_MAX / 255;
}

PoolArgs pool_args(const OpTensors& t, const OpImages& images) {
  const TensorRecord& in = *t.in[0];
  return {images.input[0],        images.output,    batch_of(images),
          images.shape.in,        images.shape.out, images.shape.window,
          in.zero_point,          t.out.zero_point, have_same_quantization(in, t.out),
          in.scale / t.out.scale, t.op.clamp_min,   t.op.clamp_max};
}

template <auto kernel>
void run(const Kernels& kernels, const OpTensors& t, const OpImages& images) {
  (kernels.*kernel)(pool_args(t, images));
}

}  // namespace

const OpDefinition average_pool_op = {1, true, true, true, pool_fits, run<&Kernels::average_pool>, nullptr, nullptr};

const OpDefinition max_pool_op = {1, true, true, true, pool_fits, run<&Kernels::max_pool>, nullptr, nullptr};

const OpDefinition mean_op = {1, false, false, false, mean_fits, run<&Kernels::mean>, nullptr, nullptr};

}  // namespace pmt
