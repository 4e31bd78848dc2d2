// A model ready to run on one worker, in memory of exactly the size it asks for.
#pragma once

#include <vector>

#include "core/net/forward.hpp"
#include "tests/aligned_bytes.hpp"

namespace pmt::tests {

class Engine {
 public:
  explicit Engine(const Model& model)
      : parameters_(static_cast<size_t>(model.op_count())),
        table_(static_cast<size_t>(Plan::table_size(model))),
        network_{&model, &portable_kernels(), parameters_.data(), nullptr},
        memory_(measure()) {
    Arena arena(memory_.data(), memory_.size());
    activations_ = take(arena);
  }

  int8_t* tensor(uint32_t index) { return activations_.tensor(plan_, Pass::main, index); }
  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }
  const Activations& activations() const { return activations_; }

  std::vector<float> logits(const std::vector<int8_t>& input, bool int8_logits) {
    const Model& model = *network_.model;
    std::memcpy(tensor(model.header().input_tensor), input.data(), input.size());
    forward(network_, plan_, activations_, 1, 0, model.op_count() - 1);
    main_logits(network_, plan_, activations_, 1, int8_logits);
    return {activations_.logits, activations_.logits + model.classes()};
  }

 private:
  Activations take(Arena& arena) const { return take_activations(arena, network_, plan_, 1); }

  size_t measure() {
    bind_parameters(*network_.model, parameters_.data());
    plan_.make(*network_.model, nullptr, 0, QueryMemory::shared, table_.data());
    Arena arena;
    take(arena);
    return arena.used();
  }

  std::vector<Parameters> parameters_;
  std::vector<int32_t> table_;
  Network network_;
  Plan plan_;
  AlignedBytes memory_;
  Activations activations_ = {};
};

}  // namespace pmt::tests
