#include "host/host_trainer.hpp"

#include <algorithm>

#include "core/zo/loss_range.hpp"

namespace pmt::host {

void HostLoss::begin(const SampleArray& samples) {
  samples_ = samples;
  failed_ = false;
  thrown_ = nullptr;
}

void HostLoss::rethrow() {
  std::exception_ptr thrown;
  std::swap(thrown, thrown_);
  if (thrown) std::rethrow_exception(thrown);
}

bool HostLoss::call(void* context, const float* logits, int32_t count, int32_t sample, int32_t* losses) {
  HostLoss& self = *static_cast<HostLoss*>(context);
  if (self.failed_) return false;
  try {
    self.loss_({&self.samples_, sample, logits, count}, losses);
    return true;
  } catch (...) {
    const std::lock_guard<std::mutex> lock(self.mutex_);
    if (!self.thrown_) self.thrown_ = std::current_exception();
    self.failed_ = true;
    return false;
  }
}

namespace {

// A worker's memory for the activations of queries at once: a quarter of a common second-level cache.
constexpr int32_t query_bytes = 1 << 17;

}  // namespace

HostTrainer::HostTrainer(std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
                         int32_t batch, int32_t threads, OwnLoss loss)
    : model_(std::move(model)),
      options_(options),
      layers_(std::move(layers)),
      batch_(batch),
      loss_(std::move(loss)),
      loss_function_(loss_.function()) {
  const Access::Shared use(model_->access());
  storage_ = model_->storage(layers_);
  team_ = std::make_unique<Team>(threads, [this] { return should_stop_ && should_stop_(); });
  const Network& network = model_->network();
  TrainerSetup setup = {
      network.model,   network.kernels, &options_,         layers_.data(), static_cast<int32_t>(layers_.size()),
      storage_.data(), batch_,          team_->executor(), network.packed, query_bytes};
  if (!loss_.empty()) setup.loss_function = &loss_function_;
  memory_ = open_measured(trainer_, setup, Trainer::table_bytes(this->model(), setup.layer_count));
}

StepResult HostTrainer::step(uint32_t step, float learning_rate, const SampleArray& samples,
                             std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  SampleReader reader(samples, model());
  StepResult result = {};
  loss_.begin(samples);
  check_step(trainer_.step(step, learning_rate, samples.count, reader.source(), &result));
  return result;
}

HostTrainer::Gradient HostTrainer::estimate(uint32_t step, int32_t index, const SampleArray& samples,
                                            std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  SampleReader reader(samples, model());
  loss_.begin(samples);
  check_step(trainer_.estimate(step, samples.count, reader.source(), index));
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

std::vector<int64_t> HostTrainer::losses(const float* logits, const SampleArray& samples) {
  const Access::Shared use(model_->access());
  std::vector<int64_t> losses(static_cast<size_t>(samples.count));
  loss_.begin(samples);
  for (int32_t i = 0; i < samples.count; ++i) {
    const int32_t label = samples.labels != nullptr ? static_cast<int32_t>(samples.labels[i]) : no_label;
    const float* row = logits + static_cast<ptrdiff_t>(i) * model().classes();
    int32_t loss = 0;
    check_step(losses_of(trainer_.context(), {i, {label}}, row, 1, &loss));
    losses[static_cast<size_t>(i)] = in_loss_units(loss, trainer_.context().loss_shift);
  }
  return losses;
}

void HostTrainer::check_step(const Status& status) {
  loss_.rethrow();
  check(status);
}

std::vector<float> HostTrainer::surprisal() const {
  const Access::Shared use(model_->access());
  return kept_state();
}

std::vector<float> HostTrainer::kept_state() const {
  const MeanPrediction& prediction = trainer_.prediction();
  return {prediction.surprisal(), prediction.surprisal() + prediction.count()};
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

void HostTrainer::restore_surprisal(const float* values, size_t count) {
  const Access::Exclusive use(model_->access());
  const std::vector<float> old = kept_state();
  if (count != old.size()) check({Code::surprisal});
  const MeanPrediction& own = trainer_.prediction();
  std::copy(values, values + count, own.surprisal());
  const Status status = own.check();
  if (!status.ok()) std::copy(old.begin(), old.end(), own.surprisal());
  check(status);
}

}  // namespace pmt::host
