#include "core/zo/direction.hpp"

#include "core/zo/estimated.hpp"

namespace pmt {
namespace {

bool is_antithetic(const TrainerOptions& options) { return options.pairs == Pairs::antithetic; }

SignStream direction_signs(const StepContext& context, const Layer& layer, uint32_t direction, uint32_t sample,
                           Purpose purpose) {
  const TrainerOptions& options = *context.options;
  const uint32_t owner = shares_perturbations(options, layer.estimator) ? 0 : sample;
  return {options.generator, {options.seed, context.step, static_cast<uint32_t>(layer.op), direction, owner, purpose}};
}

// Writes `count` values of a pattern of `period` that goes on for ever, from its place `first` on.
void repeat(const int8_t* pattern, int32_t period, int32_t first, int32_t count, int8_t* values) {
  int32_t done = 0;
  for (int32_t i = first; done < count && done < period; i = i + 1 == period ? 0 : i + 1) values[done++] = pattern[i];
  while (done < count) {  // by doubling
    const int32_t run = done < count - done ? done : count - done;
    __builtin_memcpy(values + done, values, static_cast<uint32_t>(run));
    done += run;
  }
}

uint32_t direction_of(const TrainerOptions& options, uint32_t query) {
  return is_antithetic(options) ? query / 2 : query;
}

}  // namespace

// In line it would be there at every use.
__attribute__((noinline)) Directions directions_of(const TrainerOptions& options, const Layer& layer, Purpose purpose) {
  const int32_t all = is_antithetic(options) ? layer.queries / 2 : layer.queries;
  if (!parts_queries(options) || purpose == Purpose::node_signs) return {0, all};
  const int32_t weights = all - all / 2;
  return purpose == Purpose::weight_signs ? Directions{0, weights} : Directions{weights, all - weights};
}

Direction::Direction(const StepContext& context, const Layer& layer, const QueryId& id, Purpose purpose)
    : signs_(direction_signs(context, layer, direction_of(*context.options, id.query), id.sample, purpose)),
      backwards_(is_antithetic(*context.options) && id.query % 2 != 0),
      moves_(directions_of(*context.options, layer, purpose)
                 .contain(static_cast<int32_t>(direction_of(*context.options, id.query)))) {}

void Direction::next(const Kernels& kernels, int32_t count, int8_t* values) {
  if (!moves_) {
    __builtin_memset(values, 0, static_cast<uint32_t>(count));
    return;
  }
  signs_.next(kernels, count, values);
  if (!backwards_) return;
  for (int32_t i = 0; i < count; ++i) values[i] = static_cast<int8_t>(-values[i]);
}

NodeSigns::NodeSigns(const StepContext& context, const Workspace& workspace, const Layer& layer, const QueryId& id)
    : direction_(context, layer, id, Purpose::node_signs), channels_(layer.channels) {
  if (!is_estimated(layer, Estimator::pooled_perturbation)) return;
  direction_.next(context.kernels(), channels_, workspace.channel_signs());
  signs_ = workspace.channel_signs();
}

void NodeSigns::next(const Kernels& kernels, int32_t count, int8_t* values) {
  if (signs_ == nullptr) {
    direction_.next(kernels, count, values);
    return;
  }
  repeat(signs_, channels_, channel_, count, values);
  channel_ = (channel_ + count) % channels_;
}

DirectionSums::DirectionSums(const StepContext& context, const Workspace& workspace, const Layer& layer,
                             uint32_t sample, const int32_t* differences)
    : context_(context), workspace_(workspace), layer_(layer), sample_(sample), differences_(differences) {}

int32_t DirectionSums::difference(int32_t direction) const {
  if (!is_antithetic(*context_.options)) return differences_[direction];
  return differences_[2 * direction] - differences_[2 * direction + 1];
}

void DirectionSums::open(Purpose purpose) {
  directions_ = directions_of(*context_.options, layer_, purpose);
  for (int32_t k = 0; k < directions_.count; ++k) {
    const auto direction = static_cast<uint32_t>(directions_.first + k);
    workspace_.streams[k] = direction_signs(context_, layer_, direction, sample_, purpose);
  }
}

void DirectionSums::next(int32_t count) {
  const Kernels& kernels = context_.kernels();
  __builtin_memset(workspace_.sign_sums, 0, static_cast<uint32_t>(count) * sizeof(int32_t));
  for (int32_t k = 0; k < directions_.count; ++k) {
    workspace_.streams[k].next(kernels, count, workspace_.signs);
    kernels.accumulate_signs(workspace_.signs, count, difference(directions_.first + k), workspace_.sign_sums);
  }
}

void DirectionSums::skip(int32_t count) {
  for (int32_t k = 0; k < directions_.count; ++k) workspace_.streams[k].skip(count);
}

}  // namespace pmt
