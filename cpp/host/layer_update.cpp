#include "host/layer_update.hpp"

namespace pmt::host {

void update_layer(const HostModel& host, const TrainerOptions& options, int32_t op, uint32_t step,
                  const UpdateInput& input, const GradientSums& sums, const LayerStorage& parameters) {
  const Access::Shared use(host.access());
  check(check_options(options));
  if (options.optimizer != Optimizer::sgd) check({Code::optimizer_state});
  const LayerSettings settings = {options.queries, static_cast<int16_t>(options.mu_weight),
                                  static_cast<int16_t>(options.mu_node), Estimator::weight_perturbation};
  check(check_settings(host.model(), op, options, settings));
  const Layer layer = make_layer(host.model(), op, options, settings, parameters);
  const StepContext context = {&host.network(), &host.plan(), &options, &layer, 1, step};
  LayerUpdate update(context, layer, input);
  if (update.needs_all_sums()) update.accumulate(sums);
  update.apply(sums);
}

}  // namespace pmt::host
