// A trainer with everything it needs, in memory of exactly the size it asks for.
#pragma once

#include <memory>
#include <vector>

#include "core/train/trainer.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

struct Samples {
  std::vector<std::vector<int8_t>> images;
  std::vector<int32_t> labels;
  int32_t count() const { return static_cast<int32_t>(labels.size()); }
};

Samples random_samples(RandomSource& random, const Model& model, int32_t count);

SampleSource source_of(const Samples& samples);

// No sample of it can be read.
inline const SampleSource unreadable_source = {nullptr, [](void*, int32_t, int8_t*, int32_t*) { return false; }};

// The machine that a step runs on; none of it may change a byte.
struct Machine {
  Machine() = default;
  Machine(const Executor& team) : executor(team) {}

  Executor executor = sequential_executor();
  const Kernels* kernels = &portable_kernels();
  int32_t query_bytes = 0;
  bool compact = false;
  int32_t sum_bytes = 0;
};

// The ops that a plan lets stream.
std::vector<StreamedOps> streams_of(const Plan& plan, const Model& model);

// Weights and biases of a trainer's layers, one after another.
std::vector<int32_t> parameters_of(const Trainer& trainer);

// Copies of layers' weights and biases, for a trainer to change.
struct OwnParameters {
  OwnParameters(const Model& model, const std::vector<int32_t>& layers);

  std::vector<std::vector<int8_t>> weights;
  std::vector<std::vector<int32_t>> biases;
  std::vector<LayerStorage> storage;
};

class TrainingRun {
 public:
  TrainingRun(const Model& model, const TrainerOptions& options, std::vector<int32_t> layers, int32_t batch,
              const Machine& machine);

  Trainer& trainer() { return trainer_; }

  // Steps with the whole of `samples`; the status of the first that fails.
  Status train(const Samples& samples, int32_t steps, float learning_rate);

  std::vector<int32_t> parameters() const { return parameters_of(trainer_); }

 private:
  void pack(const Model& model, const Kernels& kernels);

  std::vector<int32_t> layers_;
  OwnParameters own_;
  std::vector<Parameters> parameters_;
  std::unique_ptr<AlignedBytes> packed_memory_;
  PackedLayer* packed_ = nullptr;
  std::unique_ptr<AlignedBytes> memory_;
  Trainer trainer_;
};

// Ops with weights.
std::vector<int32_t> trainable_layers(const Model& model);

// A network, all of whose layers are under training, samples of it, and options.
struct TrainingCase {
  TrainingCase() = default;
  explicit TrainingCase(AlignedBytes image) : model(std::move(image)) {}

  TrainingRun run(const Machine& machine = {}) const {
    return TrainingRun(model, options, trainable_layers(model), samples.count(), machine);
  }

  OwnedModel model;
  Samples samples;
  TrainerOptions options;
};

}  // namespace pmt::tests
