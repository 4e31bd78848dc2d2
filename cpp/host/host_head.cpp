#include "host/host_head.hpp"

#include <algorithm>
#include <limits>

#include "host/team.hpp"

namespace pmt::host {
namespace {

constexpr int32_t most_samples_at_once = 1024;
constexpr int64_t least_macs = 1 << 19;  // a pass below them is over before threads have started

}  // namespace

HeadSolution solve_head(HostModel& model, int32_t op, const HeadData& data, float strength, int32_t threads,
                        const std::function<bool()>& should_stop) {
  const Access::Exclusive use(model.access());
  const Model& view = model.model();
  const int64_t pass = int64_t{data.inputs.count} * weight_count(view, view.op(op));
  Team team(pass < least_macs ? 1 : thread_count(threads), should_stop);
  SampleReader reader(data.inputs, head_features(view, op));
  const HeadSamples samples = {reader.source(), data.inputs.count, data.folds.empty() ? nullptr : data.folds.data(),
                               data.fold_count, data.loss};
  HeadSolver solver;
  const int32_t block = std::min(data.inputs.count, most_samples_at_once);
  const HeadSetup setup = {&view, op, model.writable_layer(op), samples, block, team.executor()};
  const AlignedMemory memory = open_measured(solver, setup, 0);
  HeadSolution found = {strength, 0, 0, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  if (strength == 0.0f) {
    check(solver.choose_strength(&found.strength));
    if (samples.fold_count > 1) found.held_out_loss = solver.held_out_loss();
  }
  found.choice_macs = solver.macs();
  check(solver.solve(found.strength));
  found.macs = solver.macs() - found.choice_macs;
  found.loss = solver.loss();
  model.rescale(op);
  return found;
}

}  // namespace pmt::host
