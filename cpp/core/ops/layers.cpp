// The ops with weights. They run by run_layer(), which knows their parameters.
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

int64_t conv2d_terms(const OpTensors& t) {
  return static_cast<int64_t>(t.op.kernel_h) * t.op.kernel_w * t.in[0]->channels;
}

int64_t depthwise_terms(const OpTensors& t) { return static_cast<int64_t>(t.op.kernel_h) * t.op.kernel_w; }

int64_t fully_connected_terms(const OpTensors& t) { return element_count(*t.in[0]); }

bool depthwise_fits(const OpTensors& t) { return window_fits(t) && t.out.channels % t.in[0]->channels == 0; }

bool is_vector(const OpTensors& t) { return t.out.height == 1 && t.out.width == 1; }

}  // namespace

const OpDefinition conv2d_op = {1, true, true, false, window_fits, nullptr, conv2d_terms, &Kernels::conv2d};

const OpDefinition depthwise_conv2d_op = {
    1, true, true, false, depthwise_fits, nullptr, depthwise_terms, &Kernels::depthwise_conv2d};

const OpDefinition fully_connected_op = {
    1, false, false, false, is_vector, nullptr, fully_connected_terms, &Kernels::fully_connected};

}  // namespace pmt
