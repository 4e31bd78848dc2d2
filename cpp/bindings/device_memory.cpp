#include "host/device_memory.hpp"

#include <pybind11/stl.h>

#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {

using host::DeviceMemory;
using host::HostModel;

namespace {

py::list plan_list(const DeviceMemory& memory) {
  const Plan& plan = memory.plan();
  py::list list;
  for (const Pass pass : {Pass::main, Pass::query}) {
    for (int32_t t = 0; t < memory.model().tensor_count(); ++t) {
      if (plan.offset(pass, t) < 0) continue;
      int32_t first = 0, last = 0;
      plan.lifetime(t, &first, &last);
      py::dict d;
      d["tensor"] = t;
      d["name"] = memory.model().name(memory.model().tensor(t).name);
      d["pass"] = pass == Pass::main ? "main" : "query";
      d["offset"] = plan.offset(pass, t);
      d["bytes"] = plan.size(t);
      d["first"] = first;
      d["last"] = last;
      list.append(d);
    }
  }
  return list;
}

}  // namespace

void register_device_memory(py::module_& m) {
  py::class_<DeviceMemory>(m, "DeviceMemory", "What training takes on a device, computed without running anything.")
      .def(py::init([](std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
                       int32_t batch, std::vector<LayerSettings> settings, bool portable) {
             const Kernels& kernels = portable ? portable_kernels() : arm_dsp_kernels();
             return std::make_unique<DeviceMemory>(std::move(model), options, std::move(layers), batch,
                                                   std::move(settings), kernels);
           }),
           py::arg("model"), py::arg("options"), py::arg("layers"), py::arg("batch"), py::arg("settings"),
           py::kw_only(), py::arg("portable"))
      .def(py::init<std::shared_ptr<HostModel>, const TrainerOptions&, std::vector<int32_t>, int32_t,
                    std::vector<LayerSettings>>(),
           py::arg("model"), py::arg("options"), py::arg("layers"), py::arg("batch"),
           py::arg("settings") = std::vector<LayerSettings>{})
      .def("plan", &plan_list)
      .def_property_readonly("activation_bytes", [](const DeviceMemory& memory) { return memory.plan().bytes(); })
      .def_property_readonly("arena_bytes", &DeviceMemory::arena_bytes);
}

}  // namespace pmt::bindings
