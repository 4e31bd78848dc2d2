// What tests of alignment measure, and the meter that does.
#pragma once

#include <doctest/doctest.h>

#include "core/align/channel_statistics.hpp"
#include "tests/random_network.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/simulated_kernels.hpp"
#include "tests/training_run.hpp"

namespace pmt::tests {

// A random network and samples of it.
struct NetworkCase {
  NetworkCase(uint64_t seed, int32_t stages, int32_t count)
      : random(seed),
        model(random_network(random, stages, Head::conv2d)),
        samples(random_samples(random, model, count)) {}

  RandomSource random;
  OwnedModel model;
  Samples samples;
};

// Calls check(machine) for all kernels, on workers whose tasks come in any order.
template <typename Check>
void for_each_machine(uint64_t seed, const Check& check) {
  for (const Kernels* kernels : tested_kernels()) {
    CAPTURE(kernels->name);
    ShuffledExecutor team(seed, 3);
    Machine machine(team.executor());
    machine.kernels = kernels;
    check(machine);
  }
}

// A layer's own copy of what an alignment writes.
struct LayerCopy {
  LayerCopy(const Model& model, const OpRecord& op)
      : weights(model.weights(op), model.weights(op) + weight_count(model, op)),
        bias(model.bias(op), model.bias(op) + model.output_of(op).channels),
        scales(model.weight_scales(op), model.weight_scales(op) + model.output_of(op).channels) {}

  WritableLayer writable() { return {weights.data(), bias.data(), scales.data()}; }
  bool operator==(const LayerCopy& other) const {
    return weights == other.weights && bias == other.bias && scales == other.scales;
  }

  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
  std::vector<float> scales;
};

// A meter on memory of exactly the size it asks for, and its own packed weights.
template <typename Meter>
class OpenMeter {
 public:
  explicit OpenMeter(const Model& model, const Machine& machine = {}, KeptActivations* kept = nullptr) {
    parameters_.resize(static_cast<size_t>(model.op_count()));
    bind_parameters(model, parameters_.data());
    Network network = {&model, machine.kernels, parameters_.data(), nullptr};
    Arena measure;
    pack_network(measure, network);
    packed_ = std::make_unique<AlignedBytes>(measure.used() + 64, 0xA5);
    Arena arena(aligned(*packed_), measure.used());
    pack_network(arena, network);
    const StatisticsSetup setup = {&model, machine.kernels, machine.executor, network.packed, kept};
    AlignedBytes tables(Meter::table_bytes(model));
    REQUIRE(meter_.open(setup, tables.data(), tables.size()).code == Code::arena_too_small);
    const size_t bytes = meter_.bytes_needed();
    memory_ = std::make_unique<AlignedBytes>(bytes + 64, 0xA5);
    REQUIRE(meter_.open(setup, aligned(*memory_), bytes - 1).code == Code::arena_too_small);
    REQUIRE(meter_.open(setup, aligned(*memory_), bytes).ok());
  }

  Meter& meter() { return meter_; }

 private:
  static uint8_t* aligned(AlignedBytes& bytes) {
    return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64);
  }

  std::vector<Parameters> parameters_;
  std::unique_ptr<AlignedBytes> packed_, memory_;
  Meter meter_;
};

}  // namespace pmt::tests
