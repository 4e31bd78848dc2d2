#include "core/kernels/dsp.hpp"
#include "core/kernels/table.hpp"

namespace pmt {

const Kernels& device_kernels() {
#ifdef PMT_ARM_DSP
  return arm_dsp_kernels();
#else
  return portable_kernels();
#endif
}

}  // namespace pmt
