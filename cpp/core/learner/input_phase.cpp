#include "core/learner/input_phase.hpp"

#include "core/learn/shifted_view.hpp"
#include "core/learn/view_disagreement.hpp"

namespace pmt {

Status InputPhase::open(const InputPhaseSetup& setup, uint8_t* memory, size_t bytes) {
  setup_ = setup;
  memory_ = memory;
  const size_t at = setup.channels->bytes_needed();
  const int32_t images = setup.samples->capacity(), classes = model().classes();
  Arena arena(memory + at, at < bytes ? bytes - at : 0);
  logits_ = arena.take<float>(int64_t{shifted_views} * images * classes);
  sums_ = arena.take<int64_t>(classes);
  surprisal_ = arena.take<float>(classes);
  disagreements_ = arena.take<int32_t>(images);
  search_.take(images, arena);
  needed_ = at + arena.used();
  return needed_ <= bytes ? Status{} : Status{Code::arena_too_small};
}

void InputPhase::start() {
  search_.start(model().original(), setup_.samples->count(LearnerSamples::Use::alignment));
  align_behind(search_.candidate(), search_.images());
}

void InputPhase::align_behind(const FilterChain& filters, int32_t images) {
  setup_.parameters->reset_channels(model().original());
  setup_.parameters->set_filters(filters);
  setup_.channels->start(*setup_.parameters, images);
  aligns_ = true;
}

Status InputPhase::step(bool* done) {
  *done = false;
  if (!aligns_) return predict_view();
  bool aligned = false;
  PMT_RETURN_IF_ERROR(setup_.channels->step(&aligned));
  if (!aligned) return {};
  aligns_ = false;
  *done = search_.is_over();
  image_ = view_ = 0;
  return {};
}

Status InputPhase::predict_view() {
  Predictor& predictor = *setup_.predictor;
  PMT_RETURN_IF_ERROR(predictor.stop_at(predictor.last()));
  predictor.place(memory_);
  PMT_RETURN_IF_ERROR(setup_.samples->read(setup_.channels->sample(image_), predictor.input()));
  shift_image(model().input(), view_, predictor.input());
  predictor.run();
  const int32_t classes = model().classes();
  const int64_t row = int64_t{view_} * search_.images() + image_;
  __builtin_memcpy(logits_ + row * classes, predictor.logits(), sizeof(float) * static_cast<size_t>(classes));
  if (++view_ < shifted_views) return {};
  view_ = 0;
  if (++image_ == search_.images()) report();
  return {};
}

// Writes the disagreement of the first views, and returns its sum.
int64_t InputPhase::measure(int32_t views) {
  const Views all = {logits_, views, search_.images(), model().classes()};
  write_surprisal(all, sums_, surprisal_);
  int64_t sum = 0;
  for (int32_t i = 0; i < all.images; ++i) {
    disagreements_[i] = disagreement(all, i, surprisal_);
    sum += disagreements_[i];
  }
  return sum;
}

void InputPhase::report() {
  const int64_t entropy = measure(1);
  (void)measure(shifted_views);
  search_.report(disagreements_, entropy);
  if (search_.is_over()) {
    align_behind(search_.best(), setup_.samples->count(LearnerSamples::Use::alignment));
  } else {
    align_behind(search_.candidate(), search_.images());
  }
}

}  // namespace pmt
