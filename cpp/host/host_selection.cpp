#include "host/host_selection.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace pmt::host {
namespace {

struct alignas(64) Chunk {
  uint8_t bytes[64];
};

struct Source {
  const SampleArray* samples;
  size_t elements;
  size_t first;  // sample that index 0 stands for

  SampleSource source() { return {this, read}; }
  static bool read(void* context, int32_t index, int8_t* image, int32_t* label) {
    const Source& source = *static_cast<Source*>(context);
    const size_t at = source.first + static_cast<size_t>(index);
    std::memcpy(image, source.samples->images + at * source.elements, source.elements);
    *label = static_cast<int32_t>(source.samples->labels[at]);
    return true;
  }
};

struct Steps {
  const TrialData* trial;
  Source source;

  static Status begin(void* context, uint32_t step, float* learning_rate) {
    Steps& steps = *static_cast<Steps*>(context);
    steps.source.first = static_cast<size_t>(step) * static_cast<size_t>(steps.trial->batch);
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

void check(const Status& status) {
  if (!status.ok()) throw StatusError{status};
}

// Of a worker, for the activations of queries at once; as in training.
constexpr int32_t query_bytes = 1 << 17;

std::vector<LayerStorage> storage_of(HostModel& model, const std::vector<int32_t>& layers) {
  std::vector<LayerStorage> storage;
  for (const int32_t op : layers) {
    const Model& view = model.model();
    if (op < 0 || op >= view.op_count() || !has_weights(view.op(op)))
      throw StatusError{{Code::layer_not_trainable, op}};
    storage.push_back(model.storage(op));
  }
  return storage;
}

// What a trainer of the candidate needs.
size_t arena_bytes(const SelectionSetup& setup, const Candidate& candidate) {
  TrainerSetup with = setup.trainer;
  with.layers = candidate.layers;
  with.layer_count = candidate.layer_count;
  with.storage = candidate.storage;
  std::vector<Chunk> tables(Trainer::table_bytes(*with.model, with.layer_count) / sizeof(Chunk) + 1);
  Trainer trainer;
  const Status measured = trainer.open(with, tables.data(), tables.size() * sizeof(Chunk));
  if (measured.code != Code::arena_too_small) check(measured);
  return trainer.bytes_needed();
}

}  // namespace

std::vector<CandidateScore> select_layers(const std::shared_ptr<HostModel>& model, const TrainerOptions& options,
                                          const std::vector<std::vector<int32_t>>& candidates, const TrialData& trial,
                                          const SampleArray& held_out, int32_t threads,
                                          const std::function<bool()>& should_stop) {
  const Access::Exclusive use(model->access());
  const auto elements = static_cast<size_t>(element_count(model->model().input()));
  Team team(threads, should_stop);
  Store store;
  Steps steps = {&trial, {&trial.samples, elements, 0}};
  Source held_out_source = {&held_out, elements, 0};
  const Network& network = model->network();
  const TrainerSetup trainer = {network.model, network.kernels, &options,        nullptr,        0,
                                nullptr,       trial.batch,     team.executor(), network.packed, query_bytes};
  const SelectionSetup setup = {trainer,
                                {&store, Store::save, Store::restore},
                                {&steps, Steps::begin, steps.source.source(), trial.batch, trial.steps},
                                held_out_source.source(),
                                held_out.count};
  std::vector<std::vector<LayerStorage>> storage;
  std::vector<Candidate> all;
  size_t bytes = 0;
  storage.reserve(candidates.size());
  for (const std::vector<int32_t>& layers : candidates) storage.push_back(storage_of(*model, layers));
  for (size_t i = 0; i < candidates.size(); ++i) {
    all.push_back({candidates[i].data(), storage[i].data(), static_cast<int32_t>(candidates[i].size())});
    bytes = std::max(bytes, arena_bytes(setup, all[i]));
  }
  std::vector<Chunk> memory(bytes / sizeof(Chunk) + 1);
  std::vector<CandidateScore> scores(candidates.size());
  check(pmt::select_layers(setup, all.data(), static_cast<int32_t>(all.size()), memory.data(),
                           memory.size() * sizeof(Chunk), scores.data()));
  return scores;
}

}  // namespace pmt::host
