#include <string>

#include "host/host_model.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {
namespace {

std::string describe(const Status& status) {
  std::string text = message(status.code);
  if (status.op < 0) return text;
  if (status.code == Code::option_value) return text + " (" + option_name(status.op) + ")";
  return text + " (index " + std::to_string(status.op) + ")";
}

}  // namespace

// A step that Ctrl-C stopped has the interrupt pending already; every other status is a bad value.
void register_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const host::StatusError& error) {
      if (error.status.code == Code::cancelled && PyErr_Occurred()) return;
      PyErr_SetString(PyExc_ValueError, describe(error.status).c_str());
    }
  });
}

}  // namespace pmt::bindings
