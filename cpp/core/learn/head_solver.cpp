#include "core/learn/head_solver.hpp"

#include "core/base/arithmetic.hpp"
#include "core/learn/head_loss.hpp"

namespace pmt {
namespace {

// From the largest on, each sqrt(10) times as large as the next.
constexpr float strengths[head_strengths] = {100.0f,       31.6227766f, 10.0f,         3.16227766f, 1.0f,
                                             0.316227766f, 0.1f,        0.0316227766f, 0.01f};
constexpr int32_t default_strength = 2;
static_assert(strengths[default_strength] == default_head_strength);

// Held-out losses hardly change after ten steps, each strength starting where the last one ended; the head itself
// takes as many as its gradient asks for.
constexpr FitLimits of_a_fold = {10, 3e-3f};
constexpr FitLimits of_the_head = {200, 1e-4f};

constexpr float largest_bias = 268435456.0f;  // in bias steps: sums stay inside int32

}  // namespace

int32_t head_features(const Model& model, int32_t op) {
  const OpRecord& record = model.op(op);
  if (record.kind != OpKind::conv2d && record.kind != OpKind::fully_connected) return 0;
  return weight_count(model, record) / model.output_of(record).channels;
}

Status HeadSolver::open(const HeadSetup& setup, void* memory, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % image_alignment != 0) return {Code::arena_alignment};
  const int32_t features = head_features(*setup.model, setup.op);
  if (features == 0) return {Code::layer_not_trainable, setup.op};
  if (!is_head_loss(setup.samples.loss)) return {Code::option_loss};
  if (setup.samples.loss == Loss::cross_entropy && setup.samples.source.targets != nullptr) {
    return {Code::label_targets};
  }
  if (setup.samples.count < 1 || setup.block < 1) return {Code::batch_size};
  setup_ = setup;
  begun_ = false;
  arena_ = Arena(memory, bytes);
  const int32_t classes = setup.model->output_of(setup.model->op(setup.op)).channels;
  objective_.open({features, classes, setup.samples, setup.block, setup.executor}, arena_);
  float** const parts[] = {&fit_.head, &fit_.direction, &fit_.gradient, &fit_.last_gradient};
  for (float** part : parts) *part = arena_.take<float>(objective_.coefficients());
  units_ = arena_.take<float>(classes);
  biases_ = arena_.take<float>(classes);
  return arena_.fits() ? Status{} : Status{Code::arena_too_small};
}

// Measures the features and the factor of the old head.
Status HeadSolver::begin() {
  if (begun_) return {};
  PMT_RETURN_IF_ERROR(objective_.measure_features(fit_.gradient));
  const TensorRecord& in = setup_.model->input_of(setup_.model->op(setup_.op));
  const int32_t features = objective_.features();
  bool empty = true;
  all_count_ = true;
  for (int32_t k = 0; k < objective_.classes(); ++k) {
    bool is_new = true;
    units_[k] = in.scale * setup_.layer.weight_scales[k];
    float sum = static_cast<float>(setup_.layer.bias[k]);
    for (int32_t f = 0; f < features; ++f) {
      const int8_t weight = setup_.layer.weights[static_cast<int64_t>(k) * features + f];
      if (weight != 0) is_new = false;
      sum += static_cast<float>(weight) * (objective_.mean(f) - static_cast<float>(in.zero_point));
    }
    biases_[k] = units_[k] * sum;
    if (is_new) objective_.add_class(k);
    empty = empty && is_new;
    all_count_ = all_count_ && objective_.counts(k);
  }
  prior_ = {setup_.layer.weights, units_, biases_, empty ? 0.0f : 1.0f};
  if (!empty && all_count_) {
    float losses[head_factors];
    start_at_prior();
    PMT_RETURN_IF_ERROR(objective_.losses_of_factors(fit_.head, losses));
    int32_t best = 0;
    for (int32_t i = 1; i < head_factors; ++i) {
      if (losses[i] < losses[best]) best = i;
    }
    prior_.factor = head_factor(best);
  }
  begun_ = true;
  return {};
}

void HeadSolver::start_at_prior() {
  for (int32_t f = 0; f <= objective_.features(); ++f) {
    for (int32_t k = 0; k < objective_.stride(); ++k) {
      fit_.head[f * objective_.stride() + k] = prior_.at(objective_, f, k);
    }
  }
}

void HeadSolver::start_choice() {
  choosing_ = true;
  fits_ = false;
  strength_ = default_head_strength;
  fold_ = tried_ = 0;
  for (float& loss : losses_) loss = 0.0f;
}

void HeadSolver::start_solution(float strength) {
  choosing_ = fits_ = false;
  strength_ = strength;
}

Status HeadSolver::step(bool* done) {
  *done = choosing_ && (setup_.samples.folds == nullptr || setup_.samples.fold_count < 2);
  if (*done) return {};
  if (!begun_) return begin();
  if (!fits_) start_fit();
  bool fitted = false;
  PMT_RETURN_IF_ERROR(fitting_.step(&fitted));
  if (!fitted) return {};
  fits_ = false;
  if (choosing_) return end_fold(done);
  write_head();
  *done = true;
  return {};
}

// Each strength of a fold starts where the last one ended.
void HeadSolver::start_fit() {
  const SampleRange range = choosing_ ? SampleRange{fold_, false} : SampleRange{};
  if (!choosing_ || tried_ == 0) start_at_prior();
  fitting_.start(objective_, range, prior_, choosing_ ? strengths[tried_] : strength_,
                 choosing_ ? of_a_fold : of_the_head, fit_);
  fits_ = true;
}

Status HeadSolver::end_fold(bool* done) {
  float loss = 0.0f;
  PMT_RETURN_IF_ERROR(objective_.loss({fold_, true}, fit_.head, &loss));
  losses_[tried_] += loss;
  if (++tried_ < head_strengths) return {};
  tried_ = 0;
  if (++fold_ < setup_.samples.fold_count) return {};
  int32_t best = 0;
  for (int32_t i = 1; i < head_strengths; ++i) {
    if (losses_[i] < losses_[best]) best = i;
  }
  // Held-out samples cannot tell what a looser head does to classes that they do not show.
  if (!all_count_ && best > default_strength) best = default_strength;
  strength_ = strengths[best];
  held_out_loss_ = losses_[best] / static_cast<float>(setup_.samples.fold_count);
  *done = true;
  return {};
}

void HeadSolver::write_head() {
  // The old head is not needed any more, nor are its units.
  choose_scales(units_);
  for (int32_t k = 0; k < objective_.classes(); ++k) write_class(k, units_[k]);
  begun_ = false;
}

Status HeadSolver::run() {
  for (bool done = false; !done;) PMT_RETURN_IF_ERROR(step(&done));
  return {};
}

Status HeadSolver::choose_strength(float* strength) {
  start_choice();
  PMT_RETURN_IF_ERROR(run());
  *strength = strength_;
  return {};
}

Status HeadSolver::solve(float strength) {
  start_solution(strength);
  return run();
}

float HeadSolver::by_step(int32_t feature, int32_t column) const {
  return fit_.head[feature * objective_.stride() + column] / objective_.spread(feature);
}

// The scale with which the weights of a class fill their range; a class of zeros keeps its own.
float HeadSolver::filling_scale(int32_t column) const {
  const int32_t features = objective_.features();
  const float input_scale = setup_.model->input_of(setup_.model->op(setup_.op)).scale;
  float largest = 0.0f;
  for (int32_t f = 0; f < features; ++f) {
    const float size = absolute(by_step(f, column));
    if (size > largest) largest = size;
  }
  const float least = absolute(fit_.head[features * objective_.stride() + column]) / (largest_bias * input_scale);
  float scale = largest / (static_cast<float>(largest_weight) * input_scale);
  if (largest == 0.0f) scale = setup_.layer.weight_scales[column];
  return clamp(scale < least ? least : scale, dead_channel_scale, largest_scale);
}

// A layer with one scale for all classes keeps one, as its file may hold no more.
void HeadSolver::choose_scales(float* scales) const {
  bool equal = true;
  float largest = 0.0f;
  for (int32_t k = 0; k < objective_.classes(); ++k) {
    if (setup_.layer.weight_scales[k] != setup_.layer.weight_scales[0]) equal = false;
    scales[k] = filling_scale(k);
    if (scales[k] > largest) largest = scales[k];
  }
  for (int32_t k = 0; equal && k < objective_.classes(); ++k) scales[k] = largest;
}

// The bias takes what the rounding of the weights takes from the mean logit.
void HeadSolver::write_class(int32_t column, float scale) const {
  const int32_t features = objective_.features();
  const TensorRecord& in = setup_.model->input_of(setup_.model->op(setup_.op));
  const float unit = scale * in.scale;
  int8_t* weights = setup_.layer.weights + static_cast<int64_t>(column) * features;
  float shift = 0.0f;
  for (int32_t f = 0; f < features; ++f) {
    const int32_t weight = clamp(round_saturating(by_step(f, column) / unit), -largest_weight, largest_weight);
    weights[f] = static_cast<int8_t>(weight);
    shift += static_cast<float>(weight) * (objective_.mean(f) - static_cast<float>(in.zero_point));
  }
  const float bias = fit_.head[features * objective_.stride() + column] / unit;
  setup_.layer.weight_scales[column] = scale;
  setup_.layer.bias[column] = round_bias(clamp(bias, -largest_bias, largest_bias) - shift);
}

}  // namespace pmt
