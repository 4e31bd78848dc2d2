#include "register.hpp"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of pmt: models, forward passes, the trainer.";
  module.attr("__version__") = PMT_VERSION;
  pmt::bindings::register_errors(module);
  pmt::bindings::register_options(module);
  pmt::bindings::register_model(module);
  pmt::bindings::register_trainer(module);
  pmt::bindings::register_selection(module);
  pmt::bindings::register_perturbed_forwards(module);
  pmt::bindings::register_device_memory(module);
  pmt::bindings::register_functions(module);
  pmt::bindings::register_profile(module);
  pmt::bindings::register_statistics(module);
  pmt::bindings::register_card_format(module);
}
