// The trainer's tables of losses: a row of queries for each sample or, where weights are moved one by
// one, the sum over the batch of each coordinate's loss difference, in every worker's own row.
#include "core/base/arithmetic.hpp"
#include "core/train/trainer.hpp"

namespace pmt {
namespace {

constexpr int32_t most_at_once = 64;

}  // namespace

int32_t Trainer::table_count() const { return options_.scope == Scope::layer_wise ? setup_.layer_count : 1; }

// Queries that a table holds for each sample; none for a layer whose gradient is exact.
int32_t Trainer::table_queries(int32_t table) const {
  const bool exact = options_.scope == Scope::layer_wise && layers_[table].estimator == Estimator::closed_form;
  return exact ? 0 : query_count(estimation_, layers_[table]);
}

int32_t Trainer::most_table_queries() const {
  int32_t most = 0;
  for (int32_t t = 0; t < table_count(); ++t) most = most < table_queries(t) ? table_queries(t) : most;
  return most;
}

// Lays the tables out, one behind another; returns their entries.
int64_t Trainer::open_table() {
  int64_t entries = 0;
  for (int32_t t = 0; t < table_count(); ++t) {
    starts_[t] = entries;
    entries += int64_t{table_queries(t)} * (adds_up(t) ? setup_.executor.workers : setup_.batch);
  }
  return entries;
}

int32_t* Trainer::losses(int32_t table, int32_t row) const {
  return losses_ + starts_[table] + static_cast<int64_t>(row) * table_queries(table);
}

bool Trainer::adds_up(int32_t table) const {
  return is_coordinate_wise() && layers_[table].estimator == Estimator::weight_perturbation;
}

void Trainer::clear_added() {
  for (int32_t table = 0; is_coordinate_wise() && table < table_count(); ++table) {
    if (!adds_up(table)) continue;
    int32_t* rows = losses(table, 0);
    const int64_t count = int64_t{table_queries(table)} * setup_.executor.workers;
    for (int64_t i = 0; i < count; ++i) rows[i] = 0;
  }
}

// Each difference is bounded so that the sum over a batch fits int32.
void Trainer::add_differences(int32_t table, const QueryBatch& queries, int32_t clean, int32_t worker) {
  const int32_t bound = INT32_MAX / setup_.batch;
  int32_t* row = losses(table, worker);
  int32_t perturbed[most_at_once];
  for (int32_t done = 0; done < queries.count; done += most_at_once) {
    QueryBatch part = queries;
    part.first += done;
    part.count = clamp(queries.count - done, 0, most_at_once);
    query_losses(estimation_, workspaces_[worker], {table, table}, part, perturbed);
    for (int32_t i = 0; i < part.count; ++i) row[part.first + i] += clamp(perturbed[i] - clean, -bound, bound);
  }
}

void Trainer::join_added(int32_t table) {
  int32_t* total = losses(table, 0);
  for (int32_t w = 1; w < setup_.executor.workers; ++w) {
    const int32_t* row = losses(table, w);
    for (int32_t q = 0; q < table_queries(table); ++q) total[q] += row[q];
  }
}

// Weights that random sparsity leaves out do not change, whatever the estimator.
void Trainer::leave_out_inactive(const Layer& layer, const GradientSums& sums) {
  const int8_t* mask = workspaces_[0].masks.of(options_, layer, estimation_.step);
  if (mask == nullptr || sums.weights == nullptr) return;
  const Model& model = *setup_.model;
  for (int32_t c = sums.begin; c < sums.begin + sums.channels(layer); ++c) {
    const ChannelWeights at = channel_weights(model, model.op(layer.op), c), to = sums.of(model, layer, c);
    for (int32_t k = 0; k < at.count; ++k) {
      if (mask[at.first + k * at.stride] == 0) sums.weights[to.first + k * to.stride] = 0;
    }
  }
}

}  // namespace pmt
