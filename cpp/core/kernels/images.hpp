// Runs a one-image kernel on every image of a batch.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt {

template <typename Args, typename Kernel>
void for_each_image(const Args& args, Kernel kernel) {
  Args image = args;
  for (int32_t i = 0; i < args.batch.images; ++i) {
    kernel(image);
    image.input += args.batch.input_stride;
    image.output += args.batch.output_stride;
  }
}

}  // namespace pmt
