#include "core/learn/head_objective.hpp"

#include "core/base/arithmetic.hpp"
#include "core/learn/head_loss.hpp"
#include "core/learn/row_product.hpp"

namespace pmt {
namespace {

constexpr int32_t samples_a_task = 16;
constexpr int32_t features_a_task = 8;
constexpr float no_logit = -1e30f;  // of a class whose probability is 0

// A sum in groups, whose error does not grow with their number.
class GroupedSum {
 public:
  void add(float value) {
    group_ += value;
    if (++count_ % 64 == 0) {
      total_ += group_;
      group_ = 0.0f;
    }
  }
  int32_t count() const { return count_; }
  float mean() const { return count_ == 0 ? 0.0f : (total_ + group_) / static_cast<float>(count_); }

 private:
  float total_ = 0.0f, group_ = 0.0f;
  int32_t count_ = 0;
};

int32_t tasks_of(int32_t count, int32_t a_task) { return (count + a_task - 1) / a_task; }

}  // namespace

// One pass over samples.
struct HeadObjective::Pass {
  Sum sum;
  SampleRange range;
  const float* head;
  const float* direction = nullptr;  // of a curvature
  float* gradient = nullptr;
  GroupedSum sums[head_factors] = {};
};

void HeadObjective::open(const HeadObjectiveSetup& setup, Arena& arena) {
  setup_ = setup;
  stride_ = round_up(setup.classes, column_group);
  macs_ = 0;
  means_ = arena.take<float>(setup.features);
  spreads_ = arena.take<float>(setup.features);
  inverses_ = arena.take<float>(setup.features);
  counts_ = arena.take<bool>(setup.classes);
  rows_ = arena.take<int8_t>(static_cast<int64_t>(setup.block) * setup.features);
  labels_ = arena.take<int32_t>(setup.block);
  places_ = arena.take<int32_t>(setup.block);
  residuals_ = arena.take<float>(static_cast<int64_t>(setup.block) * stride_);
  values_ = arena.take<float>(static_cast<int64_t>(setup.block) * head_factors);
  scratch_floats_ = larger(setup.features + 1, setup.block) + 2 * stride_;
  scratch_ = arena.take<float>(static_cast<int64_t>(setup.executor.workers) * scratch_floats_);
}

HeadObjective::Scratch HeadObjective::scratch(int32_t worker) const {
  float* start = scratch_ + static_cast<int64_t>(worker) * scratch_floats_;
  return {start, start + scratch_floats_ - 2 * stride_, start + scratch_floats_ - stride_};
}

// The next samples of a range, at most a block.
Status HeadObjective::read_block(const SampleRange& range, int32_t* next, int32_t* count) {
  const HeadSamples& samples = setup_.samples;
  for (*count = 0; *next < samples.count && *count < setup_.block; ++*next) {
    if (!range.has(samples, *next)) continue;
    int8_t* row = rows_ + static_cast<int64_t>(*count) * setup_.features;
    if (!samples.source.read(samples.source.context, *next, row, labels_ + *count)) {
      return {Code::sample_unreadable, *next};
    }
    const bool labeled = labels_[*count] >= 0 && labels_[*count] < setup_.classes;
    if (!labeled && samples.source.targets == nullptr) return {Code::label_range, *next};
    places_[(*count)++] = *next;
  }
  return {};
}

Status HeadObjective::measure_features(float* scratch) {
  const int32_t features = setup_.features;
  auto* sums = reinterpret_cast<int64_t*>(scratch);  // and, behind them, sums of squares
  for (int32_t f = 0; f < 2 * features; ++f) sums[f] = 0;
  const bool by_label = setup_.samples.loss == Loss::cross_entropy;
  for (int32_t k = 0; k < setup_.classes; ++k) counts_[k] = !by_label;
  int32_t next = 0, count = 0;
  do {
    PMT_RETURN_IF_ERROR(read_block({}, &next, &count));
    for (int32_t i = 0; i < count; ++i) {
      const int8_t* row = rows_ + static_cast<int64_t>(i) * features;
      if (by_label) counts_[labels_[i]] = true;
      for (int32_t f = 0; f < features; ++f) {
        sums[f] += row[f];
        sums[features + f] += row[f] * row[f];
      }
    }
  } while (count > 0);
  const auto n = static_cast<float>(setup_.samples.count);
  float all = 0.0f;
  for (int32_t f = 0; f < features; ++f) {
    means_[f] = to_float(sums[f]) / n;
    spreads_[f] = to_float(sums[features + f] * setup_.samples.count - sums[f] * sums[f]) / (n * n);
    all += spreads_[f];
  }
  const float mean_variance = all / static_cast<float>(features);
  for (int32_t f = 0; f < features; ++f) {
    spreads_[f] = mean_variance > 0.0f ? __builtin_sqrtf(0.5f * (spreads_[f] + mean_variance)) : 1.0f;
    inverses_[f] = 1.0f / spreads_[f];
  }
  return {};
}

// Logits of a sample of the block, and what the pass wants of them.
void HeadObjective::add_sample(const Pass& pass, int32_t sample, const Scratch& scratch) {
  const int32_t features = setup_.features, classes = setup_.classes;
  const int8_t* row = rows_ + static_cast<int64_t>(sample) * features;
  for (int32_t f = 0; f < features; ++f) scratch.row[f] = standardized(f, row[f]);
  scratch.row[features] = 1.0f;
  const auto product = [&](const float* matrix, float* sums) {
    for (int32_t k = 0; k < stride_; ++k) sums[k] = 0.0f;
    add_row_product(scratch.row, features + 1, matrix, stride_, sums);
  };
  product(pass.head, scratch.logits);
  for (int32_t k = 0; k < classes; ++k) {
    if (!counts_[k]) scratch.logits[k] = no_logit;
  }
  const HeadSamples& samples = setup_.samples;
  Target target = {labels_[sample]};
  if (samples.source.targets != nullptr) {
    target.values = samples.source.targets + static_cast<int64_t>(places_[sample]) * classes;
  }
  float* values = values_ + static_cast<int64_t>(sample) * head_factors;
  switch (pass.sum) {
    case Sum::losses: values[0] = head_residuals(samples.loss, scratch.logits, classes, target, scratch.logits); return;
    case Sum::gradient: {
      float* residuals = residuals_ + static_cast<int64_t>(sample) * stride_;
      values[0] = head_residuals(samples.loss, scratch.logits, classes, target, residuals);
      for (int32_t k = classes; k < stride_; ++k) residuals[k] = 0.0f;
      return;
    }
    case Sum::curvature:
      product(pass.direction, scratch.other);
      values[0] = head_curvature(samples.loss, scratch.logits, classes, scratch.other);
      return;
    case Sum::factors:
      for (int32_t i = 0; i < head_factors; ++i) {
        for (int32_t k = 0; k < classes; ++k) scratch.other[k] = head_factor(i) * scratch.logits[k];
        values[i] = head_residuals(samples.loss, scratch.other, classes, target, scratch.other);
      }
      return;
  }
}

// The block's part of the gradient by the coefficients of a feature.
void HeadObjective::add_feature(const Pass& pass, int32_t feature, int32_t count, float* column) {
  for (int32_t i = 0; i < count; ++i) {
    column[i] = feature == setup_.features
                    ? 1.0f
                    : standardized(feature, rows_[static_cast<int64_t>(i) * setup_.features + feature]);
  }
  add_row_product(column, count, residuals_, stride_, pass.gradient + static_cast<int64_t>(feature) * stride_);
}

Status HeadObjective::run(Pass& pass) {
  int32_t next = 0, count = 0;
  const auto by_sample = [&](int32_t task, int32_t worker) {
    const int32_t end = smaller(count, (task + 1) * samples_a_task);
    const Scratch memory = scratch(worker);
    for (int32_t i = task * samples_a_task; i < end; ++i) add_sample(pass, i, memory);
  };
  const auto by_feature = [&](int32_t task, int32_t worker) {
    const int32_t end = smaller(features() + 1, (task + 1) * features_a_task);
    float* column = scratch(worker).row;
    for (int32_t f = task * features_a_task; f < end; ++f) add_feature(pass, f, count, column);
  };
  const Executor& executor = setup_.executor;
  const int32_t values = pass.sum == Sum::factors ? head_factors : 1;  // a sample
  const int32_t products = pass.sum == Sum::gradient || pass.sum == Sum::curvature ? 2 : 1;
  const int64_t macs_a_sample = static_cast<int64_t>(setup_.features + 1) * setup_.classes * products;
  while (true) {
    PMT_RETURN_IF_ERROR(read_block(pass.range, &next, &count));
    if (count == 0) break;
    if (!executor.for_each(tasks_of(count, samples_a_task), true, by_sample)) return {Code::cancelled};
    if (pass.sum == Sum::gradient) {
      executor.for_each(tasks_of(setup_.features + 1, features_a_task), false, by_feature);
    }
    for (int32_t i = 0; i < count; ++i) {
      for (int32_t v = 0; v < values; ++v) pass.sums[v].add(values_[i * head_factors + v]);
    }
    macs_ += count * macs_a_sample;
  }
  return {};
}

Status HeadObjective::loss(const SampleRange& range, const float* head, float* mean_loss) {
  Pass pass = {Sum::losses, range, head};
  PMT_RETURN_IF_ERROR(run(pass));
  *mean_loss = pass.sums[0].mean();
  return {};
}

Status HeadObjective::gradient(const SampleRange& range, const float* head, float* gradient, float* mean_loss) {
  Pass pass = {Sum::gradient, range, head};
  pass.gradient = gradient;
  const int32_t count = coefficients();
  for (int32_t i = 0; i < count; ++i) gradient[i] = 0.0f;
  PMT_RETURN_IF_ERROR(run(pass));
  const float share = 1.0f / static_cast<float>(larger(pass.sums[0].count(), 1));
  for (int32_t i = 0; i < count; ++i) gradient[i] *= share;
  *mean_loss = pass.sums[0].mean();
  return {};
}

Status HeadObjective::curvature(const SampleRange& range, const float* head, const float* direction,
                                float* mean_curvature) {
  Pass pass = {Sum::curvature, range, head, direction};
  PMT_RETURN_IF_ERROR(run(pass));
  *mean_curvature = pass.sums[0].mean();
  return {};
}

Status HeadObjective::losses_of_factors(const float* head, float* mean_losses) {
  Pass pass = {Sum::factors, {}, head};
  PMT_RETURN_IF_ERROR(run(pass));
  for (int32_t i = 0; i < head_factors; ++i) mean_losses[i] = pass.sums[i].mean();
  return {};
}

}  // namespace pmt
