#include "host/host_selection.hpp"

#include <algorithm>
#include <map>

namespace pmt::host {
namespace {

struct Steps {
  const TrialData* trial;
  SampleReader reader;

  static Status begin(void* context, uint32_t step, float* learning_rate) {
    Steps& steps = *static_cast<Steps*>(context);
    steps.reader.start_at(static_cast<size_t>(step) * static_cast<size_t>(steps.trial->batch));
    *learning_rate = steps.trial->learning_rates[step];
    return {};
  }
};

// The start values, by op.
struct Store {
  struct Values {
    std::vector<int8_t> weights;
    std::vector<int32_t> bias;
  };
  std::map<int32_t, Values> saved;

  static Status save(void* context, const Layer& layer) {
    static_cast<Store*>(context)->saved[layer.op] = {{layer.weights, layer.weights + layer.weight_count},
                                                     {layer.bias, layer.bias + layer.channels}};
    return {};
  }
  static Status restore(void* context, const Layer& layer) {
    const Values& values = static_cast<Store*>(context)->saved.at(layer.op);
    std::copy(values.weights.begin(), values.weights.end(), layer.weights);
    std::copy(values.bias.begin(), values.bias.end(), layer.bias);
    return {};
  }
};

// A worker's memory for the activations of queries at once; as in training.
constexpr int32_t query_bytes = 1 << 17;

// Memory that a trainer of the candidate needs.
size_t arena_bytes(const SelectionSetup& setup, const Candidate& candidate) {
  TrainerSetup with = setup.trainer;
  with.layers = candidate.layers;
  with.layer_count = candidate.layer_count;
  with.storage = candidate.storage;
  const AlignedMemory tables(Trainer::table_bytes(*with.model, with.layer_count));
  Trainer trainer;
  open_tables(trainer, with, tables);
  return trainer.bytes_needed();
}

}  // namespace

std::vector<CandidateScore> select_layers(const std::shared_ptr<HostModel>& model, const TrainerOptions& options,
                                          const std::vector<std::vector<int32_t>>& candidates, const TrialData& trial,
                                          const SampleArray& held_out, int32_t threads,
                                          const std::function<bool()>& should_stop) {
  const Access::Exclusive use(model->access());
  Team team(threads, should_stop);
  Store store;
  Steps steps = {&trial, {trial.samples, model->model()}};
  SampleReader held_out_reader(held_out, model->model());
  const Network& network = model->network();
  const TrainerSetup trainer = {network.model, network.kernels, &options,        nullptr,        0,
                                nullptr,       trial.batch,     team.executor(), network.packed, query_bytes};
  const SelectionSetup setup = {trainer,
                                {&store, Store::save, Store::restore},
                                {&steps, Steps::begin, steps.reader.source(), trial.batch, trial.steps},
                                held_out_reader.source(),
                                held_out.count};
  std::vector<std::vector<LayerStorage>> storage;
  std::vector<Candidate> all;
  size_t bytes = 0;
  storage.reserve(candidates.size());
  for (const std::vector<int32_t>& layers : candidates) storage.push_back(model->storage(layers));
  for (size_t i = 0; i < candidates.size(); ++i) {
    all.push_back({candidates[i].data(), storage[i].data(), static_cast<int32_t>(candidates[i].size())});
    bytes = std::max(bytes, arena_bytes(setup, all[i]));
  }
  const AlignedMemory memory(bytes);
  std::vector<CandidateScore> scores(candidates.size());
  check(pmt::select_layers(setup, all.data(), static_cast<int32_t>(all.size()), memory.data(), memory.bytes(),
                           scores.data()));
  return scores;
}

}  // namespace pmt::host
