#include "host/profile.hpp"

#include <pybind11/stl.h>

#include "arrays.hpp"
#include "host/kernels/kernel_choice.hpp"
#include "register.hpp"

namespace pmt::bindings {
namespace {

using host::HostModel;
using host::Profiler;

std::unique_ptr<Profiler> make_profiler(std::shared_ptr<HostModel> model, const py::object& object) {
  const auto images = checked_images(object, model->model());
  if (images.shape(0) == 0) throw py::value_error("images must be one or more; got none");
  return std::make_unique<Profiler>(std::move(model), images.data(), static_cast<int32_t>(images.shape(0)));
}

double time_op(Profiler& profiler, int32_t op) {
  if (op < 0 || op >= profiler.op_count()) {
    throw py::value_error("op must be 0.." + std::to_string(profiler.op_count() - 1) + "; got " + std::to_string(op));
  }
  const py::gil_scoped_release release;
  return profiler.time_op(op);
}

py::tuple peak(int32_t threads) {
  const host::Peak peak = without_gil([&] { return host::measure_peak(threads); });
  return py::make_tuple(peak.instruction, peak.gmacs);
}

std::vector<std::string> available_kernels() {
  std::vector<std::string> names;
  for (const Kernels* kernels : host::available_kernels()) names.emplace_back(kernels->name);
  return names;
}

}  // namespace

void register_profile(py::module_& m) {
  py::class_<Profiler>(m, "Profiler", "Times the ops of a model one by one, as inference runs them on one thread.")
      .def(py::init(&make_profiler), py::arg("model"), py::arg("images"))
      .def_property_readonly("images", &Profiler::images, "Images at once, as in inference.")
      .def("time_ops", &Profiler::time_ops, py::call_guard<py::gil_scoped_release>(), "Seconds an image, for every op.")
      .def("time_op", &time_op, py::arg("op"), "Seconds an image of one op.");
  m.def("peak", &peak, py::arg("threads") = 0,
        "Instruction and 10^9 multiply-accumulates a second of a loop that touches registers only.");
  m.def(
      "kernels", [] { return host::host_kernels().name; }, "Name of the kernels in use.");
  m.def("available_kernels", &available_kernels, "Names of the kernels that can run here, fastest first.");
  m.def("threads", &host::thread_count, py::arg("requested") = 0, "Threads that a request means.");
}

}  // namespace pmt::bindings
