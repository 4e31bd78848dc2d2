// The same values in another shape.
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

bool fits(const OpTensors& t) { return element_count(*t.in[0]) == element_count(t.out); }

void run(const Kernels&, const OpTensors& t, const OpImages& images) {
  copy_images(images, [&](const int8_t* input, int8_t* output) {
    __builtin_memcpy(output, input, static_cast<uint32_t>(element_count(t.out)));
  });
}

}  // namespace

const OpDefinition reshape_op = {1, false, false, true, fits, run, nullptr, nullptr};

}  // namespace pmt
