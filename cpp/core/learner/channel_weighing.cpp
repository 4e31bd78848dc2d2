#include "core/learner/channel_weighing.hpp"

#include "core/align/image_noise.hpp"

namespace pmt {

void ChannelWeighing::take(const Model& model, int32_t op, const LearnerSamples& samples, Arena& arena) {
  sums_.take(ReliabilitySums::larger({}, model, op), arena);
  found_ = arena.take<ChannelReliability>(model.input_of(model.op(op)).channels);
  scratch_ = arena.take<float>(weighing_floats(model, op));
  const auto stage = static_cast<int64_t>(samples.stage_bytes());
  const int64_t image = element_count(model.input());
  other_ = arena.take<int8_t>(image < stage ? stage : image);
  column_sums_ = arena.take<int32_t>(noise_probe_sums(model.input()));
}

Status ChannelWeighing::add_probe(const Model& model, const LearnerSamples& samples, int32_t other,
                                  int8_t* input) const {
  PMT_RETURN_IF_ERROR(samples.read(other, other_));
  add_noise_probe(model.input(), input, other_, column_sums_, input);
  return {};
}

void ChannelWeighing::weigh(const Model& model, int32_t op, int32_t images, float strength,
                            const WritableLayer& layer) const {
  sums_.conclude(images, found_);
  weigh_channels(model, op, found_, strength, layer, scratch_);
}

}  // namespace pmt
