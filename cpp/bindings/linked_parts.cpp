#include <pybind11/stl.h>

#include <map>
#include <string>
#include <vector>

#include "core/zo/layer.hpp"
#include "host/host_model.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {
namespace {

// Bits of the sets in core/base/linked, by name.
using Parts = std::map<std::string, uint32_t>;

template <typename Part>
void add(uint32_t& parts, Part part) {
  parts |= 1u << static_cast<uint32_t>(part);
}

Parts parts_of_model(const host::HostModel& host) {
  Parts parts = {{"ops", 0}, {"depthwise_sides", 0}};
  for (int32_t i = 0; i < host.model().op_count(); ++i) {
    const OpRecord& op = host.model().op(i);
    add(parts["ops"], op.kind);
    if (op.kind == OpKind::depthwise_conv2d && op.kernel_w < 32) add(parts["depthwise_sides"], op.kernel_w);
  }
  return parts;
}

Parts parts_of_training(const host::HostModel& host, const TrainerOptions& options,
                        const std::vector<int32_t>& layers) {
  Parts parts = {{"losses", 0}, {"generators", 0}, {"estimators", 0}};
  add(parts["losses"], options.loss);
  add(parts["generators"], options.generator);
  for (const int32_t op : layers) add(parts["estimators"], choose_estimator(host.model(), op, options));
  return parts;
}

}  // namespace

void register_linked_parts(py::module_& m) {
  m.def("parts_of_model", &parts_of_model, py::arg("model"));
  m.def("parts_of_training", &parts_of_training, py::arg("model"), py::arg("options"), py::arg("layers"));
}

}  // namespace pmt::bindings
