#include "core/zo/layer.hpp"
#include "register.hpp"
#include "words.hpp"

namespace py = pybind11;

namespace pmt::bindings {
namespace {

// Low, high, and whether they are open.
template <typename T>
py::object to_python(const Range<T>& range) {
  return py::make_tuple(range.low, range.high, range.low_open, range.high_open);
}

template <typename Enumeration>
py::object to_python(const Words<Enumeration>& words) {
  return split(words);
}

// The values that each option may have, by its name.
py::dict option_values() {
  py::dict values;
  for_each_option([&](const char* name, auto, auto allowed) { values[name] = to_python(allowed); });
  return values;
}

// The labels that each loss reads and the gradient that it has, by its word.
py::dict losses(const py::object& traits) {
  py::dict found;
  const py::tuple names = split(words<Loss>);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto loss = static_cast<Loss>(i);
    found[names[i]] = traits(has_gradient(loss), needs_labels(loss), takes_targets(loss));
  }
  return found;
}

}  // namespace

std::string option_name(int32_t index) {
  std::string found;
  for_each_option([&](const char* name, auto, auto) {
    if (index-- == 0) found = name;
  });
  return found;
}

void register_options(py::module_& m) {
  py::class_<TrainerOptions> options(m, "Options", "Every choice of the trainer; see pmt.ZOTrainer.");
  options.def(py::init<>()).def("pack", [](const TrainerOptions& packed) {
    return py::bytes(reinterpret_cast<const char*>(&packed), sizeof packed);
  });
  for_each_option([&](const char* name, auto member, auto) { options.def_readwrite(name, member); });
  m.def("option_values", &option_values);
  const auto fields = py::make_tuple("has_gradient", "needs_labels", "takes_targets");
  const py::object traits = py::module_::import("collections").attr("namedtuple")("LossTraits", fields);
  m.attr("LossTraits") = traits;
  m.def("losses", [traits] { return losses(traits); });
}

}  // namespace pmt::bindings
