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
    : direction_(context, workspace, layer, id, Purpose::node_signs), layer_(layer), regions_(nullptr) {
  if (layer.estimator != Estimator::pooled_perturbation) return;
  direction_.next(context.kernels(), node_columns(layer), workspace.region_signs);
  regions_ = workspace.region_signs;
}

void NodeSigns::next(const Kernels& kernels, int32_t count, int8_t* values) {
  if (regions_ == nullptr) {
    direction_.next(kernels, count, values);
    return;
  }
  for (int32_t done = 0; done < count;) done += next_of_region(count - done, values + done);
}

// At most to the end of the region's part of the row.
int32_t NodeSigns::next_of_region(int32_t count, int8_t* values) {
  const Regions& regions = layer_.regions;
  const int32_t channels = layer_.channels, column = regions.column_at(x_);
  const int32_t region = regions.row_at(y_) * regions.columns + column;
  const int32_t left = (regions.column_end(column) - x_) * channels - channel_;
  const int32_t run = count < left ? count : left;
  repeat(regions_ + region * channels, channels, channel_, run, values);
  const int32_t at = x_ * channels + channel_ + run;
  x_ = at / channels;
  channel_ = at % channels;
  if (x_ == regions.width) {
    x_ = 0;
    ++y_;
  }
  return run;
}

}  // namespace pmt
