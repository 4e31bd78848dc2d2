#include "python_loss.hpp"

#include <cmath>

#include "core/zo/loss_units.hpp"

namespace pmt::bindings {
namespace {

std::string type_name(const py::object& object) { return py::str(py::type::of(object).attr("__name__")); }

std::string name_of(const py::object& function) {
  return py::hasattr(function, "__name__") ? std::string(py::str(function.attr("__name__"))) : type_name(function);
}

}  // namespace

PythonLoss::PythonLoss(py::object function, int32_t classes)
    : function_(std::move(function)), name_(name_of(function_)), classes_(classes) {}

void PythonLoss::write(const host::LogitBlock& block, int32_t* losses) const {
  const py::gil_scoped_acquire gil;
  const FloatArray logits(std::vector<py::ssize_t>{block.rows, 1, classes_}, block.logits);
  const py::object returned = function_(logits, labels(block));
  const auto values = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(returned);
  if (!values) {
    throw py::type_error("loss " + name_ + " must return an array of numbers; got " + type_name(returned));
  }
  if (values.ndim() != 2 || values.shape(0) != block.rows || values.shape(1) != 1) {
    throw py::value_error("loss " + name_ + " must return a loss for each query and sample, shape (" +
                          std::to_string(block.rows) + ", 1) for logits " + shape_text(logits) + "; got " +
                          shape_text(values));
  }
  for (int32_t i = 0; i < block.rows; ++i) losses[i] = fixed(values.data()[i]);
}

// The label of one sample: (1,), targets (1, classes), or None.
py::object PythonLoss::labels(const host::LogitBlock& block) const {
  const host::SampleArray& all = *block.samples;
  if (all.targets != nullptr) {
    const float* own = all.targets + static_cast<ptrdiff_t>(block.sample) * classes_;
    return FloatArray(std::vector<py::ssize_t>{1, classes_}, own);
  }
  if (all.labels == nullptr || all.labels[block.sample] == no_label) return py::none();
  return Int64Array(1, all.labels + block.sample);
}

int32_t PythonLoss::fixed(double loss) const {
  if (!std::isfinite(loss)) {
    throw py::value_error("loss " + name_ + " returned " + std::string(py::str(py::float_(loss))) +
                          "; every loss must be a finite number, and counts as -1024 to 1024");
  }
  return fixed_loss(static_cast<float>(loss));
}

}  // namespace pmt::bindings
