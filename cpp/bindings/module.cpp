#include <cstring>
#include <string>

#include "host/host_learner.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {
namespace {

std::string describe(const Status& status) {
  std::string text = message(status.code);
  if (status.index() < 0) return text;
  if (status.code == Code::option_value) return text + " (" + option_name(status.index()) + ")";
  return text + " (index " + std::to_string(status.index()) + ")";
}

// A step that Ctrl-C stopped has the interrupt pending already; every other status is a bad value. A file gives an
// OSError with number, reason and name.
void register_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const host::StatusError& error) {
      if (error.status.code == Code::cancelled && PyErr_Occurred()) return;
      PyErr_SetString(PyExc_ValueError, describe(error.status).c_str());
    } catch (const host::BusyError& error) {
      py::set_error(py::module_::import("pmt.errors").attr("ModelBusyError"), error.what());
    } catch (const host::StorageError& error) {
      const py::tuple arguments = py::make_tuple(error.number, std::strerror(error.number), error.path);
      PyErr_SetObject(PyExc_OSError, arguments.ptr());
    }
  });
}

}  // namespace
}  // namespace pmt::bindings

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of pmt: models, forward passes, the trainer.";
  module.attr("__version__") = PMT_VERSION;
  pmt::bindings::register_errors();
  pmt::bindings::register_options(module);
  pmt::bindings::register_model(module);
  pmt::bindings::register_trainer(module);
  pmt::bindings::register_perturbed_forwards(module);
  pmt::bindings::register_device_memory(module);
  pmt::bindings::register_functions(module);
  pmt::bindings::register_profile(module);
  pmt::bindings::register_statistics(module);
  pmt::bindings::register_learn(module);
  pmt::bindings::register_learner(module);
  pmt::bindings::register_export(module);
}
