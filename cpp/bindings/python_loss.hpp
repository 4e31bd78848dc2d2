// A Python callable as the loss: called with the logits of a block of queries of a sample, under the GIL.
#pragma once

#include "arrays.hpp"
#include "host/host_loss.hpp"

namespace pmt::bindings {

class PythonLoss {
 public:
  PythonLoss(py::object function, int32_t classes);

  // function(logits (rows, 1, classes), labels of the sample) -> losses (rows, 1).
  void write(const host::LogitBlock& block, int32_t* losses) const;

 private:
  py::object labels(const host::LogitBlock& block) const;
  int32_t fixed(double loss) const;

  py::object function_;
  std::string name_;
  int32_t classes_;
};

}  // namespace pmt::bindings
