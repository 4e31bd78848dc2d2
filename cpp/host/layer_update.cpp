#include "host/layer_update.hpp"

namespace pmt::host {

void update_layer(const HostModel& host, const TrainerOptions& options, int32_t op, uint32_t step,
                  const UpdateInput& input, const GradientSums& sums, const LayerStorage& parameters) {
  const Access::Shared use(host.access());
  check(check_options(options));
  TrainerOptions by_weight = options;
  by_weight.rule = EstimatorRule::weight;
  const Layer layer = make_layer(host.model(), op, by_weight, parameters);
  const StepContext context = {&host.network(), &host.plan(), &options, &layer, 1, step};
  LayerUpdate update(context, layer, input);
  if (update.needs_all_sums()) update.accumulate(sums);
  update.apply(sums);
}

}  // namespace pmt::host
