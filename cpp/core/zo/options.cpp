#include "core/zo/options.hpp"

#include "core/base/linked/generators.hpp"
#include "core/zo/chosen_loss.hpp"

namespace pmt {
namespace {

Status check_values(const TrainerOptions& o) {
  Status status;
  int32_t index = 0;
  for_each_option([&](const char*, auto member, auto values) {
    if (status.ok() && !values.holds(o.*member)) status = {Code::option_value, index};
    ++index;
  });
  return status;
}

}  // namespace

bool parts_queries(const TrainerOptions& options) {
  return options.separate_biases != 0 && options.train_weights != 0 && options.train_bias != 0;
}

int32_t least_queries(const TrainerOptions& options) {
  if (parts_queries(options)) return options.pairs == Pairs::antithetic ? 4 : 2;
  return options.baseline == Baseline::leave_one_out ? 2 : 1;
}

bool has_gradient(Loss loss) { return loss != Loss::function; }

bool needs_labels(Loss loss) { return loss != Loss::entropy && loss != Loss::function; }

bool takes_targets(Loss loss) {
  return loss == Loss::squared_error || loss == Loss::binary_cross_entropy || loss == Loss::function;
}

bool keeps_prediction(const TrainerOptions& options) {
  return is_loss(options, Loss::entropy) && options.diversity > 0.0f;
}

Status check_options(const TrainerOptions& o) {
  if (o.queries < least_queries(o)) return {Code::option_queries};
  PMT_RETURN_IF_ERROR(check_values(o));
  if (!is_linked(linked::losses, o.loss) || !is_linked(linked::generators, o.generator)) return {Code::not_linked};
  if (o.generator == Generator::xorshift32 && o.seed == 0) return {Code::option_seed};
  if (o.pairs == Pairs::antithetic && o.queries % 2 != 0) return {Code::option_pairs};
  if (o.train_weights == 0 && o.train_bias == 0) return {Code::option_nothing_trained};
  return {};
}

}  // namespace pmt
