#include <pybind11/native_enum.h>

#include "core/layer.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace pmt::bindings {

void register_options(py::module_& m) {
  py::native_enum<Generator>(m, "Generator", "enum.IntEnum")
      .value("philox", Generator::philox)
      .value("xorshift32", Generator::xorshift32)
      .finalize();
  py::native_enum<Directions>(m, "Directions", "enum.IntEnum")
      .value("rademacher", Directions::rademacher)
      .value("hadamard", Directions::hadamard)
      .value("coordinate", Directions::coordinate)
      .finalize();
  py::native_enum<Pairs>(m, "Pairs", "enum.IntEnum")
      .value("one_sided", Pairs::one_sided)
      .value("antithetic", Pairs::antithetic)
      .finalize();
  py::native_enum<HadamardIndex>(m, "HadamardIndex", "enum.IntEnum")
      .value("per_sample", HadamardIndex::per_sample)
      .value("running", HadamardIndex::running)
      .finalize();
  py::native_enum<Scope>(m, "Scope", "enum.IntEnum")
      .value("layer_wise", Scope::layer_wise)
      .value("model_wise", Scope::model_wise)
      .finalize();
  py::native_enum<Baseline>(m, "Baseline", "enum.IntEnum")
      .value("clean", Baseline::clean)
      .value("leave_one_out", Baseline::leave_one_out)
      .finalize();
  py::native_enum<EstimatorRule>(m, "EstimatorRule", "enum.IntEnum")
      .value("by_dimension", EstimatorRule::by_dimension)
      .value("weight", EstimatorRule::weight)
      .value("node", EstimatorRule::node)
      .value("measured", EstimatorRule::measured)
      .finalize();
  py::native_enum<NodeDimension>(m, "NodeDimension", "enum.IntEnum")
      .value("output", NodeDimension::output)
      .value("input", NodeDimension::input)
      .finalize();
  py::native_enum<Sharing>(m, "Sharing", "enum.IntEnum")
      .value("per_sample", Sharing::per_sample)
      .value("batch", Sharing::batch)
      .finalize();
  py::native_enum<GradientNormScaling>(m, "GradientNormScaling", "enum.IntEnum")
      .value("none", GradientNormScaling::none)
      .value("queries_and_samples", GradientNormScaling::queries_and_samples)
      .value("queries", GradientNormScaling::queries)
      .value("measured", GradientNormScaling::measured)
      .finalize();
  py::native_enum<Rounding>(m, "Rounding", "enum.IntEnum")
      .value("nearest", Rounding::nearest)
      .value("stochastic", Rounding::stochastic)
      .finalize();
  py::native_enum<Step>(m, "Step", "enum.IntEnum")
      .value("gradient", Step::gradient)
      .value("normalised", Step::normalised)
      .finalize();
  py::native_enum<Allocation>(m, "Allocation", "enum.IntEnum")
      .value("uniform", Allocation::uniform)
      .value("variance", Allocation::variance)
      .finalize();
  py::native_enum<MuRule>(m, "MuRule", "enum.IntEnum")
      .value("fixed", MuRule::fixed)
      .value("calibrated", MuRule::calibrated)
      .finalize();
  py::native_enum<Estimator>(m, "Estimator", "enum.IntEnum")
      .value("weight_perturbation", Estimator::weight_perturbation)
      .value("node_perturbation", Estimator::node_perturbation)
      .value("closed_form", Estimator::closed_form)
      .finalize();
  py::class_<LayerSettings>(m, "LayerSettings", "What may differ from layer to layer.")
      .def(py::init([](int32_t queries, int32_t mu_weight, int32_t mu_node, Estimator estimator) {
             return LayerSettings{queries, mu_weight, mu_node, estimator};
           }),
           py::kw_only(), py::arg("queries"), py::arg("mu_weight"), py::arg("mu_node"), py::arg("estimator"))
      .def_readonly("queries", &LayerSettings::queries)
      .def_readonly("mu_weight", &LayerSettings::mu_weight)
      .def_readonly("mu_node", &LayerSettings::mu_node)
      .def_readonly("estimator", &LayerSettings::estimator)
      .def("pack", [](const LayerSettings& settings) {
        return py::bytes(reinterpret_cast<const char*>(&settings), sizeof settings);
      });
  py::native_enum<Optimiser>(m, "Optimiser", "enum.IntEnum")
      .value("sgd", Optimiser::sgd)
      .value("momentum", Optimiser::momentum)
      .value("adam", Optimiser::adam)
      .finalize();
  py::class_<TrainerOptions>(m, "Options", "Every choice of the trainer; see pmt.ZOTrainer.")
      .def(py::init<>())
      .def_readwrite("seed", &TrainerOptions::seed)
      .def_readwrite("queries", &TrainerOptions::queries)
      .def_readwrite("mu_weight", &TrainerOptions::mu_weight)
      .def_readwrite("mu_node", &TrainerOptions::mu_node)
      .def_readwrite("generator", &TrainerOptions::generator)
      .def_readwrite("directions", &TrainerOptions::directions)
      .def_readwrite("pairs", &TrainerOptions::pairs)
      .def_readwrite("hadamard_index", &TrainerOptions::hadamard_index)
      .def_readwrite("sparsity", &TrainerOptions::sparsity)
      .def_readwrite("mask_interval", &TrainerOptions::mask_interval)
      .def_readwrite("scope", &TrainerOptions::scope)
      .def_readwrite("baseline", &TrainerOptions::baseline)
      .def_readwrite("rule", &TrainerOptions::rule)
      .def_readwrite("node_dimension", &TrainerOptions::node_dimension)
      .def_readwrite("node_ratio", &TrainerOptions::node_ratio)
      .def_readwrite("sharing", &TrainerOptions::sharing)
      .def_readwrite("gradient_norm_scaling", &TrainerOptions::gradient_norm_scaling)
      .def_readwrite("quantisation_aware_scaling", &TrainerOptions::quantisation_aware_scaling)
      .def_readwrite("rounding", &TrainerOptions::rounding)
      .def_readwrite("step", &TrainerOptions::step)
      .def_readwrite("train_bias", &TrainerOptions::train_bias)
      .def_readwrite("int8_logits", &TrainerOptions::int8_logits)
      .def_readwrite("weight_tile_bytes", &TrainerOptions::weight_tile_bytes)
      .def_readwrite("allocation", &TrainerOptions::allocation)
      .def_readwrite("mu", &TrainerOptions::mu)
      .def_readwrite("mu_per_channel", &TrainerOptions::mu_per_channel)
      .def_readwrite("probe_samples", &TrainerOptions::probe_samples)
      .def_readwrite("probe_queries", &TrainerOptions::probe_queries)
      .def_readwrite("train_weights", &TrainerOptions::train_weights)
      .def_readwrite("optimiser", &TrainerOptions::optimiser)
      .def_readwrite("momentum", &TrainerOptions::momentum)
      .def_readwrite("adam_beta2", &TrainerOptions::adam_beta2)
      .def_readwrite("shrinkage_memory", &TrainerOptions::shrinkage_memory)
      .def("pack", [](const TrainerOptions& options) {
        return py::bytes(reinterpret_cast<const char*>(&options), sizeof options);
      });
}

}  // namespace pmt::bindings
