// The functions by which each file of the bindings adds to the module. Bindings convert, check, release the GIL and
// call; they hold no algorithm.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

namespace pmt::bindings {

// The name at a place of for_each_option().
std::string option_name(int32_t index);

void register_options(pybind11::module_& module);
void register_model(pybind11::module_& module);
void register_trainer(pybind11::module_& module);
void register_perturbed_forwards(pybind11::module_& module);
void register_device_memory(pybind11::module_& module);
void register_functions(pybind11::module_& module);
void register_profile(pybind11::module_& module);
void register_statistics(pybind11::module_& module);
void register_learn(pybind11::module_& module);
void register_learner(pybind11::module_& module);
void register_export(pybind11::module_& module);

}  // namespace pmt::bindings
