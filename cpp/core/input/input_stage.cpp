#include "core/input/input_stage.hpp"

#include "core/input/filters.hpp"
#include "core/input/resampling.hpp"

namespace pmt {
namespace {

int64_t padded(int64_t bytes) { return (bytes + image_alignment - 1) / image_alignment * image_alignment; }

Frame frame_of(const Model& model, uint8_t* pixels) {
  return {pixels, model.stage()->height, model.stage()->width, model.input().channels};
}

// The filter that takes most decides, for a learner may choose any.
int64_t filter_bytes(const Frame& frame) {
  const int64_t rows = NeighborRows::bytes(frame), shrinkage = dct_shrinkage_bytes(frame);
  return rows < shrinkage ? shrinkage : rows;
}

void run_filter(const FilterRecord& filter, const Frame& frame, uint8_t* scratch) {
  switch (filter.kind) {
    case FilterKind::none: return;
    case FilterKind::switching_median: return switching_median(frame, filter.strength, scratch);
    case FilterKind::dct_shrinkage: return dct_shrinkage(frame, filter.strength, filter.noise, scratch);
    case FilterKind::sharpening: return sharpening(frame, filter.strength, scratch);
    case FilterKind::standardization: return standardization(frame, filter.strength);
    case FilterKind::tone_curve: return tone_curve(frame, filter.strength);
  }
}

}  // namespace

int64_t frame_bytes(const Model& model) {
  if (model.stage() == nullptr) return element_count(model.input());
  return static_cast<int64_t>(model.stage()->height) * model.stage()->width * model.input().channels;
}

int64_t input_stage_bytes(const Model& model) {
  if (model.stage() == nullptr) return 0;
  const Frame frame = frame_of(model, nullptr);
  const int64_t resampling = resample_bytes(frame, {model.input().height, model.input().width});
  return resampling < filter_bytes(frame) ? filter_bytes(frame) : resampling;
}

StageMemory stage_memory(const Model& model) {
  const int64_t frame = padded(frame_lead(frame_of(model, nullptr), {model.input().height, model.input().width}));
  const int64_t frame_end = frame + frame_bytes(model), input_end = element_count(model.input());
  const int64_t scratch = padded(frame_end < input_end ? input_end : frame_end);
  return {frame, scratch, padded(scratch + input_stage_bytes(model))};
}

void run_input_stage(const Model& model, uint8_t* frame, uint8_t* scratch, int8_t* input) {
  if (model.stage() == nullptr) return;
  const Frame pixels = frame_of(model, frame);
  for (int32_t i = 0; i < model.filter_count(); ++i) run_filter(model.filter(i), pixels, scratch);
  resample(pixels, {model.input().height, model.input().width}, model.pixel_table(), scratch, input);
}

}  // namespace pmt
