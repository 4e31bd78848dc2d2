// By which samples a learner judges the states of its model.
#include "core/zo/loss_units.hpp"
#include "tests/learner_device.hpp"

using namespace pmt;
using namespace pmt::tests;

TEST_CASE("a state on trial is evaluated on samples that came later, and nothing changes") {
  const World world(33);
  Device device(world);
  device.observe_all(60);
  REQUIRE(device.run(LearnerPhase::all).ok());
  const LearnerState best = device.learner.candidate();
  REQUIRE(best != LearnerState::original);
  REQUIRE(device.run(LearnerPhase::evaluate).ok());
  CHECK(device.learner.candidate() == best);
  const LearnerScore score = device.learner.held_out(best);
  REQUIRE(device.learner.commit().ok());
  CHECK(device.learner.begin(LearnerPhase::all).code == Code::learner_call);
  const uint32_t before = device.checksum();
  REQUIRE(device.learner.begin(LearnerPhase::evaluate).ok());
  CHECK(device.learner.roll_back().code == Code::learner_call);
  CHECK(device.learner.confirm().code == Code::learner_call);
  bool done = false;
  REQUIRE(device.learner.run({0, 0}, &done).ok());
  CHECK(device.learner.held_out(LearnerState::original).loss_sum == score.loss_sum);
  REQUIRE(device.learner.observe(world.frames[70].data(), world.labels[70], Role::hold_out).ok());
  REQUIRE(device.run(LearnerPhase::evaluate).ok());
  CHECK(device.learner.held_out(LearnerState::original).count == score.count + 1);
  CHECK(device.learner.held_out(best).count == 0);
  CHECK(device.learner.candidate() == LearnerState::original);
  CHECK(device.learner.on_trial());
  CHECK(device.checksum() == before);
  REQUIRE(device.learner.confirm().ok());
}

TEST_CASE("an alignment is kept where its loss is less on four samples with labels or more, those trained on, too") {
  int32_t kept = 0;
  const size_t counts[] = {3, 4, 10};
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const size_t count = counts[seed % 3];
    World world(seed);
    // Labels that say nothing of the frames are no reason to align.
    if (seed % 2 == 1) std::reverse(world.labels.begin(), world.labels.begin() + 10);
    Device judged(world), unjudged(world);
    const auto observe = [&](Device& device, bool labeled) {
      for (size_t i = 0; i < count; ++i) {
        const int32_t label = labeled ? world.labels[i] : no_label;
        REQUIRE(device.learner.observe(world.frames[i].data(), label, Role::train).ok());
      }
    };
    const auto loss = [&](Device& device) {
      int64_t sum = 0;
      for (size_t i = 0; i < count; ++i) {
        sum += cross_entropy(device.logits(i).data(), world.model.classes(), world.labels[i]);
      }
      return sum;
    };
    observe(judged, true);
    observe(unjudged, false);
    REQUIRE(judged.run(LearnerPhase::all).ok());
    REQUIRE(unjudged.run(LearnerPhase::align).ok());
    const int64_t before = loss(unjudged);
    CHECK(outcome(unjudged).state == LearnerState::aligned);
    const bool is_kept = count < 4 || loss(unjudged) < before;
    CHECK(judged.learner.candidate() == (is_kept ? LearnerState::aligned : LearnerState::original));
    CHECK(judged.learner.held_out(LearnerState::aligned).count == 0);
    kept += is_kept ? 1 : 0;
  }
  CHECK(kept > 10);
  CHECK(kept < 22);
}

TEST_CASE("labels that come after their frames judge an alignment, each frame once") {
  const World world(5);
  Device at_once(world), later(world);
  const auto observe = [&](Device& device, size_t i, int32_t label) {
    REQUIRE(device.learner.observe(world.frames[i].data(), label, Role::train).ok());
  };
  for (size_t i = 0; i < 12; ++i) {
    // Labels that say nothing of the frames.
    observe(at_once, i, world.labels[11 - i]);
    observe(later, i, no_label);
  }
  for (size_t i = 0; i < 12; ++i) {
    for (int32_t times = 0; times < 2; ++times) observe(later, i, world.labels[11 - i]);
  }
  CHECK(at_once.learner.samples().count(LearnerSamples::Use::judgment) == 12);
  CHECK(later.learner.samples().count(LearnerSamples::Use::judgment) == 12);
  REQUIRE(at_once.run(LearnerPhase::align).ok());
  REQUIRE(later.run(LearnerPhase::align).ok());
  CHECK(at_once.learner.candidate() == LearnerState::original);
  CHECK(later.learner.candidate() == LearnerState::original);
}

TEST_CASE("the head of the original is solved where later samples judge the alignment away") {
  const World world(6);
  Device device(world, 20);
  const auto observe = [&](size_t i, int32_t label, Role role) {
    REQUIRE(device.learner.observe(world.frames[i].data(), label, role).ok());
  };
  for (size_t i = 0; i < 12; ++i) observe(i, no_label, Role::train);
  REQUIRE(device.run(LearnerPhase::align).ok());
  CHECK(device.learner.candidate() == LearnerState::aligned);
  for (size_t i = 12; i < 42; ++i) observe(i, world.labels[53 - i], i < 32 ? Role::hold_out : Role::train);
  REQUIRE(device.run(LearnerPhase::head).ok());
  CHECK(device.learner.held_out(LearnerState::aligned).count == 20);
  CHECK(device.learner.held_out(LearnerState::head).count == 0);
  CHECK(device.learner.held_out(LearnerState::head_alone).count == 20);
}

TEST_CASE("a second adaptation solves the head of its alignment, though that is no better than the first one's") {
  int32_t adapted = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const World world(seed);
    Device device(world);
    device.observe_all(80);
    REQUIRE(device.run(LearnerPhase::align).ok());
    if (device.learner.candidate() == LearnerState::original) continue;
    REQUIRE(device.learner.commit().ok());
    REQUIRE(device.learner.confirm().ok());
    REQUIRE(device.run(LearnerPhase::all).ok());
    const LearnerScore first = device.learner.held_out(LearnerState::original);
    CHECK(device.learner.held_out(LearnerState::aligned).loss_sum == first.loss_sum);
    CHECK(device.learner.held_out(LearnerState::head).count == first.count);
    ++adapted;
  }
  CHECK(adapted > 3);
}
