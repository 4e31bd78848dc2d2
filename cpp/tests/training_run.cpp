#include "tests/training_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace pmt::tests {

Samples random_samples(RandomSource& random, const Model& model, int32_t count) {
  Samples samples;
  for (int32_t i = 0; i < count; ++i) {
    samples.images.push_back(random.bytes(element_count(model.input())));
    samples.labels.push_back(random.integer(0, model.classes() - 1));
  }
  return samples;
}

SampleSource source_of(const Samples& samples) {
  const auto read = [](void* context, int32_t index, int8_t* image, int32_t* label) {
    const auto& all = *static_cast<const Samples*>(context);
    const std::vector<int8_t>& one = all.images[static_cast<size_t>(index)];
    std::copy(one.begin(), one.end(), image);
    *label = all.labels[static_cast<size_t>(index)];
    return true;
  };
  return {const_cast<Samples*>(&samples), read};
}

std::vector<StreamedOps> streams_of(const Plan& plan, const Model& model) {
  std::vector<StreamedOps> streams;
  for (int32_t i = 0; i < model.op_count(); i = plan.segment_end(i) + 1) {
    if (plan.streams(i)) streams.push_back({i, plan.segment_end(i), plan.band(i)});
  }
  return streams;
}

OwnParameters::OwnParameters(const Model& model, const std::vector<int32_t>& layers) {
  for (const int32_t index : layers) {
    const OpRecord& op = model.op(index);
    weights.emplace_back(model.weights(op), model.weights(op) + weight_count(model, op));
    biases.emplace_back(model.bias(op), model.bias(op) + model.output_of(op).channels);
    storage.push_back({weights.back().data(), biases.back().data()});
  }
}

TrainingRun::TrainingRun(const Model& model, const TrainerOptions& options, std::vector<int32_t> layers, int32_t batch,
                         const Machine& machine)
    : layers_(std::move(layers)), own_(model, layers_) {
  const auto count = static_cast<int32_t>(layers_.size());
  pack(model, *machine.kernels);
  TrainerSetup setup = {&model, machine.kernels,  &options, layers_.data(),     count, own_.storage.data(),
                        batch,  machine.executor, packed_,  machine.query_bytes};
  setup.compact = machine.compact;
  setup.sum_bytes = machine.sum_bytes;
  AlignedBytes tables(Trainer::table_bytes(model, count));
  REQUIRE(trainer_.open(setup, tables.data(), tables.size()).code == Code::arena_too_small);
  const std::vector<StreamedOps> streams = streams_of(trainer_.plan(), model);
  if (machine.compact) {  // as a device is told
    setup.streams = streams.data();
    setup.stream_count = static_cast<int32_t>(streams.size());
  }
  const size_t bytes = trainer_.bytes_needed();
  memory_ = std::make_unique<AlignedBytes>(bytes, 0xA5);
  REQUIRE(trainer_.open(setup, memory_->data(), bytes - 1).code == Code::arena_too_small);
  REQUIRE(trainer_.open(setup, memory_->data(), bytes).code == Code::ok);
}

void TrainingRun::pack(const Model& model, const Kernels& kernels) {
  parameters_.resize(static_cast<size_t>(model.op_count()));
  bind_parameters(model, parameters_.data());
  for (size_t i = 0; i < layers_.size(); ++i) {
    parameters_[static_cast<size_t>(layers_[i])] = {own_.storage[i].weights, own_.storage[i].bias};
  }
  Network network = {&model, &kernels, parameters_.data(), nullptr};
  Arena measure;
  pack_network(measure, network);
  packed_memory_ = std::make_unique<AlignedBytes>(measure.used(), 0xA5);
  Arena arena(packed_memory_->data(), packed_memory_->size());
  pack_network(arena, network);
  packed_ = network.packed;
}

Status TrainingRun::train(const Samples& samples, int32_t steps, float learning_rate) {
  for (int32_t step = 0; step < steps; ++step) {
    StepResult result = {};
    PMT_RETURN_IF_ERROR(
        trainer_.step(static_cast<uint32_t>(step), learning_rate, samples.count(), source_of(samples), &result));
  }
  return {};
}

std::vector<int32_t> parameters_of(const Trainer& trainer) {
  std::vector<int32_t> all;
  for (int32_t i = 0; i < trainer.layer_count(); ++i) {
    const Layer& layer = trainer.layer(i);
    all.insert(all.end(), layer.weights, layer.weights + layer.weight_count);
    all.insert(all.end(), layer.bias, layer.bias + layer.channels);
  }
  return all;
}

std::vector<int32_t> trainable_layers(const Model& model) {
  std::vector<int32_t> layers;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (has_weights(model.op(i))) layers.push_back(i);
  }
  return layers;
}

}  // namespace pmt::tests
