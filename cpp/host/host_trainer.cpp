#include "host/host_trainer.hpp"

#include <algorithm>
#include <cstring>

namespace pmt::host {
namespace {

// Of a worker, for the activations of queries at once: a quarter of a common second-level cache.
constexpr int32_t query_bytes = 1 << 17;

struct Source {
  SampleArray samples;
  size_t elements;
};

bool read_sample(void* context, int32_t index, int8_t* image, int32_t* label) {
  const Source& source = *static_cast<Source*>(context);
  std::memcpy(image, source.samples.images + static_cast<size_t>(index) * source.elements, source.elements);
  *label = static_cast<int32_t>(source.samples.labels[index]);
  return true;
}

void check(const Status& status) {
  if (!status.ok()) throw StatusError{status};
}

}  // namespace

HostTrainer::HostTrainer(std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
                         int32_t batch, int32_t threads, std::vector<LayerSettings> settings)
    : model_(std::move(model)),
      options_(options),
      layers_(std::move(layers)),
      settings_(std::move(settings)),
      batch_(batch) {
  const Access::Shared use(model_->access());
  const Model& view = model_->model();
  for (const int32_t op : layers_) {
    if (op < 0 || op >= view.op_count() || !has_weights(view.op(op)))
      throw StatusError{{Code::layer_not_trainable, op}};
    storage_.push_back(model_->storage(op));
  }
  team_ = std::make_unique<Team>(threads, [this] { return should_stop_ && should_stop_(); });
  open();
}

void HostTrainer::open() {
  if (!settings_.empty() && settings_.size() != layers_.size()) throw StatusError{{Code::layer_settings}};
  memory_.resize(Trainer::table_bytes(model(), static_cast<int32_t>(layers_.size())) / sizeof(Chunk) + 1);
  const Status measured = trainer_.open(setup(), memory_.data(), memory_.size() * sizeof(Chunk));
  if (measured.code != Code::arena_too_small) check(measured);
  memory_.resize(trainer_.bytes_needed() / sizeof(Chunk) + 1);
  check(trainer_.open(setup(), memory_.data(), memory_.size() * sizeof(Chunk)));
}

TrainerSetup HostTrainer::setup() {
  const Network& network = model_->network();
  const LayerSettings* settings = settings_.empty() ? nullptr : settings_.data();
  return {network.model,
          network.kernels,
          &options_,
          layers_.data(),
          static_cast<int32_t>(layers_.size()),
          storage_.data(),
          batch_,
          team_->executor(),
          network.packed,
          query_bytes,
          settings,
          is_measured(options_)};
}

// The optimizer state does not depend on the settings, and outlives them.
void HostTrainer::configure(std::vector<LayerSettings> settings) {
  const Access::Exclusive use(model_->access());
  const std::vector<float> kept = kept_state();
  const auto keep = [&] { std::copy(kept.begin(), kept.end(), trainer_.optimizer_state().values); };
  settings_.swap(settings);
  try {
    open();
  } catch (const StatusError&) {
    settings_.swap(settings);
    open();
    keep();
    throw;
  }
  keep();
}

Calibrated HostTrainer::calibrate(uint32_t step, const SampleArray& samples, std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  Source source = {samples, static_cast<size_t>(element_count(model().input()))};
  const size_t count = layers_.size();
  Calibrated all = {std::vector<LayerMeasurement>(count), std::vector<QueryDemand>(count),
                    std::vector<LayerSettings>(count), 0, 0};
  CalibrationResult result = {all.measurements.data(), all.demands.data(), all.settings.data(), 0, 0};
  check(pmt::calibrate(trainer_, step, samples.count, {&source, read_sample}, result));
  all.forwards = result.forwards;
  all.macs = result.macs;
  return all;
}

StepResult HostTrainer::step(uint32_t step, float learning_rate, const SampleArray& samples,
                             std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  Source source = {samples, static_cast<size_t>(element_count(model().input()))};
  StepResult result = {};
  check(trainer_.step(step, learning_rate, samples.count, {&source, read_sample}, &result));
  return result;
}

HostTrainer::Gradient HostTrainer::estimate(uint32_t step, int32_t index, const SampleArray& samples,
                                            std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  Source source = {samples, static_cast<size_t>(element_count(model().input()))};
  check(trainer_.estimate(step, samples.count, {&source, read_sample}, index));
  const Layer& layer = trainer_.layer(index);
  const GradientSums sums = trainer_.sums();
  Gradient gradient = {std::vector<float>(static_cast<size_t>(layer.weight_count)),
                       std::vector<float>(static_cast<size_t>(layer.channels))};
  for (int32_t c = 0; c < layer.channels; ++c) {
    const ChannelFactors factors =
        gradient_factors(trainer_.context(), layer, trainer_.update_input(layer, 0.0f, samples.count), c);
    const ChannelWeights at = channel_weights(model(), model().op(layer.op), c);
    for (int32_t k = 0; k < at.count && sums.weights != nullptr; ++k) {
      const int32_t i = at.first + k * at.stride;
      gradient.weights[static_cast<size_t>(i)] = static_cast<float>(sums.weights[i]) * factors.weight;
    }
    gradient.bias[static_cast<size_t>(c)] = static_cast<float>(sums.bias[c]) * factors.bias;
  }
  return gradient;
}

std::vector<float> HostTrainer::optimizer_state() const {
  const Access::Shared use(model_->access());
  return kept_state();
}

std::vector<float> HostTrainer::kept_state() const {
  const OptimizerState state = trainer_.optimizer_state();
  return {state.values, state.values + state.count};
}

int32_t HostTrainer::steps_begun() const {
  const Access::Shared use(model_->access());
  return trainer_.steps_begun();
}

std::vector<Layer> HostTrainer::layers() const {
  const Access::Shared use(model_->access());
  std::vector<Layer> layers;
  layers.reserve(layers_.size());
  for (int32_t i = 0; i < trainer_.layer_count(); ++i) layers.push_back(trainer_.layer(i));
  return layers;
}

void HostTrainer::restore_optimizer_state(const float* values, size_t count) {
  const Access::Exclusive use(model_->access());
  const std::vector<float> old = kept_state();
  if (count != old.size()) throw StatusError{{Code::optimizer_state}};
  const OptimizerState own = trainer_.optimizer_state();
  std::copy(values, values + count, own.values);
  const Status status = own.check();
  if (!status.ok()) std::copy(old.begin(), old.end(), own.values);
  check(status);
}

}  // namespace pmt::host
