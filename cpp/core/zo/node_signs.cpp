#include "core/zo/node_signs.hpp"

namespace pmt {
namespace {

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

}  // namespace

NodeSigns::NodeSigns(const StepContext& context, const Workspace& workspace, const Layer& layer, const QueryId& id)
    : direction_(context, layer, id, Purpose::node_signs),
      channels_(layer.channels),
      regions_(regions_of(context.model(), layer)) {
  if (layer.estimator != Estimator::pooled_perturbation) return;
  int8_t* signs = workspace.region_signs();
  direction_.next(context.kernels(), node_columns(layer), signs);
  signs_ = signs;
}

void NodeSigns::next(const Kernels& kernels, int32_t count, int8_t* values) {
  if (signs_ == nullptr) {
    direction_.next(kernels, count, values);
    return;
  }
  for (int32_t done = 0; done < count;) done += next_of_region(count - done, values + done);
}

// At most to the end of the region's part of the row.
int32_t NodeSigns::next_of_region(int32_t count, int8_t* values) {
  const int32_t left = (regions_.end_of(x_) - x_) * channels_ - channel_;
  const int32_t run = count < left ? count : left;
  repeat(signs_ + regions_.at(y_, x_) * channels_, channels_, channel_, run, values);
  const int32_t at = x_ * channels_ + channel_ + run;
  x_ = at / channels_;
  channel_ = at % channels_;
  if (x_ == regions_.width) {
    x_ = 0;
    ++y_;
  }
  return run;
}

}  // namespace pmt
