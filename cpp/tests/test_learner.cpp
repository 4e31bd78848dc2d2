// A learner on a device of its own memory: what it learns, in any slices, and what it refuses.
#include "core/learner/pmt_learner.h"
#include "tests/learner_device.hpp"

using namespace pmt;
using namespace pmt::tests;

TEST_CASE("a learner becomes better on what its sensor sees, in exactly the memory that it asks for") {
  int32_t better = 0, held_out = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const World world(seed, 80, false, AlignedWeights::none, seed > 5);
    CHECK(Device(world, 16, true, 1).opened.code == Code::arena_too_small);
    Device device(world);
    REQUIRE(device.opened.ok());
    const int32_t before = device.correct();
    device.observe_all(80);
    REQUIRE(device.run(LearnerPhase::all).ok());
    held_out += device.learner.held_out(LearnerState::original).count;
    if (outcome(device).state == LearnerState::original) continue;
    CHECK(device.correct() > before);
    ++better;
  }
  CHECK(better >= 6);
  CHECK(held_out == 8 * 16 - 4);  // a last one may wait for another sample of its class
}

TEST_CASE("any slices give the same bytes, and predictions between them are those of the state in force") {
  RandomSource random(77);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const bool has_stage = seed > 3;
    const int32_t slicings = has_stage ? 5 : 50, most_steps = has_stage ? 3000 : 150;
    const AlignedWeights some = seed == 3 ? AlignedWeights::windows : AlignedWeights::reliability;
    World world(20 + seed, 40, has_stage, seed % 2 == 1 ? some : AlignedWeights::none, seed == 2 || seed == 3);
    if (seed % 3 == 0) world.cut_blocks();
    CHECK(Device(world, 8, true, 1).opened.code == Code::arena_too_small);
    Device whole(world, 8);
    whole.observe_all(40);
    REQUIRE(whole.run(LearnerPhase::all).ok());
    const Outcome expected = outcome(whole);
    if (world.weights == AlignedWeights::reliability) {  // its frames hold noise
      world.weights = AlignedWeights::windows;
      Device of_windows(world, 8);
      world.weights = AlignedWeights::reliability;
      of_windows.observe_all(40);
      REQUIRE(of_windows.run(LearnerPhase::all).ok());
      CHECK(of_windows.learner.steps() < whole.learner.steps());
    }
    for (int32_t slicing = 0; slicing < slicings; ++slicing) {
      Device device(world, 8);
      const std::vector<float> before = device.logits(3);
      device.observe_all(40);
      REQUIRE(device.learner.begin(LearnerPhase::all).ok());
      for (bool done = false; !done;) {
        const bool by_time = random.integer(0, 1) == 0;
        const int32_t size = random.integer(1, most_steps);
        REQUIRE(
            device.learner.run(by_time ? LearnerBudget{0, static_cast<uint32_t>(size)} : LearnerBudget{size, 0}, &done)
                .ok());
        CHECK(device.logits(3) == before);
      }
      CHECK(outcome(device) == expected);
    }
  }
}

TEST_CASE("with memory for activations alignment reads a frame for two layers, and leaves the same bytes, sliced") {
  RandomSource random(78);
  int32_t streaming = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const bool has_stage = seed > 5;
    const LearnerPhase phase = has_stage ? LearnerPhase::input : LearnerPhase::align;
    const World world(50 + seed, 40, has_stage, seed % 2 == 1 ? AlignedWeights::windows : AlignedWeights::none);
    Device without(world, 8), with(world, 8);
    CHECK(with.open_with_external(1).code == Code::arena_too_small);
    REQUIRE(with.open_with_external().ok());
    CHECK(with.external.size() == static_cast<size_t>(40 * kept_bytes(world.model) + 15) / 16 * 16);
    CHECK(without.learner.need().external == 0);
    without.observe_all(40);
    with.observe_all(40);
    REQUIRE(without.run(phase).ok());
    REQUIRE(with.learner.begin(phase).ok());
    bool done = false;
    const std::vector<float> before = with.logits(3);
    for (done = false; !done;) {
      REQUIRE(with.learner.run({random.integer(1, has_stage ? 3000 : 90), 0}, &done).ok());
      CHECK(with.logits(3) == before);
    }
    CHECK(outcome(with) == outcome(without));
    CHECK(without.reads > with.reads + 32);
    CHECK(with.learner.steps() == without.learner.steps());
    const int32_t held_out = with.learner.held_out(LearnerState::original).count;
    // Two forwards a frame that alignment takes, and one of each by the states that are compared.
    if (!has_stage) CHECK(with.reads == 2 * (40 - held_out) + 2 * 40);
    const Plan& plan = with.learner.plan();
    for (int32_t op = 0; op < world.model.op_count(); ++op) streaming += plan.streams(op) ? 1 : 0;
  }
  CHECK(streaming > 20);  // activations inside a stream are kept, too
}

TEST_CASE("phases one by one reach what all of them reach") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    World world(33 + seed);
    if (seed > 1) world.cut_blocks();
    Device all(world), each(world);
    all.observe_all(80);
    each.observe_all(80);
    REQUIRE(all.run(LearnerPhase::all).ok());
    for (const LearnerPhase phase :
         {LearnerPhase::align, LearnerPhase::head, LearnerPhase::head_alone, LearnerPhase::epochs}) {
      REQUIRE(each.run(phase).ok());
    }
    CHECK(all.learner.candidate() == each.learner.candidate());
    CHECK(outcome(all).checksum == outcome(each).checksum);
  }
}

TEST_CASE("of several blocks the one is trained that an epoch has led to the least loss, as if it were the only one") {
  const auto train = [](Device& device) {
    device.observe_all(80);
    REQUIRE(device.run(LearnerPhase::align).ok());
    REQUIRE(device.run(LearnerPhase::epochs).ok());
  };
  std::vector<int32_t> chosen;
  int32_t kept = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    World world(70 + seed), one_block(70 + seed);
    world.cut_blocks();
    Device device(world);
    CHECK(device.learner.trial(1).count == 0);
    train(device);
    size_t best = 0, most_persistent = 0, most_epochs = 0;
    for (size_t i = 0; i < world.blocks.size(); ++i) {
      one_block.blocks = {world.blocks[i]};
      one_block.epochs = 1;
      Device alone(one_block);
      train(alone);
      const LearnerScore expected = alone.learner.held_out(LearnerState::trained);
      const LearnerScore found = device.learner.trial(static_cast<int32_t>(i));
      CHECK((found.loss_sum == expected.loss_sum && found.correct == expected.correct));
      CHECK((found.count == expected.count && found.count >= 14));
      if (found.loss_sum < device.learner.trial(static_cast<int32_t>(best)).loss_sum) best = i;
      most_persistent = std::max(most_persistent, alone.learner.need().persistent);
      most_epochs = std::max(most_epochs, alone.learner.need().epochs);
    }
    const bool is_kept = device.learner.candidate() == LearnerState::trained;
    if (is_kept) CHECK(device.learner.block() == static_cast<int32_t>(best));
    kept += is_kept ? 1 : 0;
    // They share memory, beside their scores.
    CHECK(device.learner.need().persistent == most_persistent + sizeof(LearnerScore) * world.blocks.size());
    CHECK(device.learner.need().epochs == most_epochs);
    one_block.blocks = {world.blocks[best]};
    one_block.epochs = 2;
    Device alone(one_block);
    train(alone);
    CHECK(outcome(device) == outcome(alone));
    if (is_kept) CHECK(device.learner.block() == static_cast<int32_t>(best));  // confirmed
    REQUIRE(device.learner.cancel().ok());
    CHECK(device.learner.trial(0).count == 0);
    chosen.push_back(static_cast<int32_t>(best));
  }
  std::sort(chosen.begin(), chosen.end());
  CHECK(std::unique(chosen.begin(), chosen.end()) - chosen.begin() > 2);  // it depends on the images
  CHECK(kept > 1);
}

TEST_CASE("a learner learns the same from C") {
  World world(34, 80, false, AlignedWeights::reliability);
  world.cut_blocks();
  Device device(world), device_in_c(world);
  const LearnerSetup as_in_cpp = device.setup(16, true);
  pmt_learner_setup setup = {};
  setup.image = world.model.image().data();
  setup.image_bytes = world.model.image().size();
  setup.clean = &world.clean[0].mean;
  setup.clean_count = static_cast<int32_t>(world.clean.size());
  setup.frames = {&device_in_c, as_in_cpp.frames.read, as_in_cpp.frames.write};
  setup.samples = static_cast<int32_t>(world.frames.size());
  setup.held_out = 16;
  setup.keeps_confirmed = true;
  setup.epochs = reinterpret_cast<const pmt_epochs*>(&as_in_cpp.epochs);
  setup.keeps_activations = true;
  setup.weights = PMT_WEIGHTS_RELIABILITY;
  AlignedBytes object(pmt_learner_bytes()), tables(pmt_learner_table_bytes(&setup));
  int status = 0;
  bool done = false;
  pmt_learner* learner = pmt_learner_open(object.data(), &setup, tables.data(), tables.size(), &status);
  REQUIRE(std::strcmp(pmt_message(status), "the arena is smaller than the plan needs") == 0);
  const pmt_need need = pmt_learner_need(learner);
  CHECK(need.memory == need.persistent + std::max({need.predict, need.align, need.head, need.epochs}));
  CHECK(need.slot == device.learner.slot_bytes());
  AlignedBytes memory(need.memory), external(need.external);
  setup.external = external.data();
  setup.external_bytes = external.size();
  learner = pmt_learner_open(object.data(), &setup, memory.data(), memory.size(), &status);
  REQUIRE(status == 0);
  device.observe_all(80);
  for (size_t i = 0; i < 80; ++i) {
    REQUIRE(pmt_learner_observe(learner, world.frames[i].data(), world.labels[i], PMT_AUTOMATIC) == 0);
  }
  REQUIRE(device.run(LearnerPhase::all).ok());
  REQUIRE(pmt_learner_begin(learner, PMT_PHASE_ALL) == 0);
  while (!done) REQUIRE(pmt_learner_run(learner, 100, 0, &done) == 0);
  CHECK(pmt_learner_candidate(learner) == static_cast<pmt_state>(device.learner.candidate()));
  REQUIRE(pmt_learner_candidate(learner) != PMT_ORIGINAL);
  CHECK(pmt_learner_block(learner) == device.learner.block());
  const auto check = [](const pmt_score& found, const LearnerScore& expected) {
    CHECK(found.loss_sum == expected.loss_sum);
    CHECK(found.correct == expected.correct);
    CHECK(found.count == expected.count);
  };
  for (const pmt_state state : {PMT_ORIGINAL, PMT_ALIGNED, PMT_HEAD, PMT_HEAD_ALONE, PMT_TRAINED}) {
    check(pmt_learner_held_out(learner, state), device.learner.held_out(static_cast<LearnerState>(state)));
  }
  for (int32_t block = 0; block < static_cast<int32_t>(world.blocks.size()); ++block) {
    check(pmt_learner_trial(learner, block), device.learner.trial(block));
    CHECK(pmt_learner_trial(learner, block).count == 16);
  }
  REQUIRE(device.learner.commit().ok());
  REQUIRE(pmt_learner_commit(learner) == 0);
  CHECK(pmt_learner_on_trial(learner));
  pmt_prediction prediction = {};
  std::copy(world.frames[5].begin(), world.frames[5].end(), pmt_learner_frame(learner));
  REQUIRE(pmt_learner_predict(learner, pmt_learner_frame(learner), &prediction) == 0);
  CHECK(std::vector<float>(prediction.logits, prediction.logits + world.model.classes()) == device.logits(5));
  CHECK(pmt_learner_roll_back(learner) == 0);
  CHECK(pmt_learner_in_force(learner) == PMT_ORIGINAL);
  CHECK(pmt_learner_confirm(learner) == static_cast<int>(Code::learner_call));
}

TEST_CASE("a learner in C refuses what is null, without a write") {
  const World world(40);
  pmt_learner_setup setup = {}, without_image = {};
  setup.image = world.model.image().data();
  setup.image_bytes = without_image.image_bytes = world.model.image().size();
  AlignedBytes object(pmt_learner_bytes() + 8), memory(100000);
  for (const auto& [at, of] : std::vector<std::pair<uint8_t*, const pmt_learner_setup*>>{
           {nullptr, &setup}, {object.data() + 4, &setup}, {object.data(), nullptr}, {object.data(), &without_image}}) {
    int status = 0;
    CHECK(pmt_learner_open(at, of, memory.data(), memory.size(), &status) == nullptr);
    CHECK(std::string(pmt_message(status)) == "a null object, set-up or image, or an object not aligned to 8 bytes");
  }
  CHECK(pmt_learner_need(nullptr).memory == 0);
  int status = 0;
  REQUIRE(pmt_learner_open(object.data(), &setup, nullptr, memory.size(), &status) != nullptr);
  CHECK(status == static_cast<int>(Code::arena_too_small));
}

TEST_CASE("a learner that could not be opened does nothing") {
  const World world(40);
  Device device(world);
  LearnerSetup setup = device.setup(16, true);
  const size_t slot = device.learner.slot_bytes();
  StateStorage storage = {nullptr, slot - 1,
                          [](void*, int32_t, size_t, void* to, size_t count) {
                            std::memset(to, 0, count);
                            return true;
                          },
                          [](void*, int32_t, size_t, const void*, size_t) { return false; },
                          [](void*, int32_t) { return false; }};
  setup.storage = &storage;
  Learner learner;
  REQUIRE(learner.open(setup, device.memory.data(), device.memory.size()).code == Code::state_size);
  Prediction prediction = {};
  bool done = false;
  CHECK(learner.frame() == nullptr);
  CHECK(learner.sensor_frame() == nullptr);
  for (const Status& status :
       {learner.run_stage(), learner.predict(world.frames[0].data(), &prediction),
        learner.observe(world.frames[0].data(), 0, Role::train), learner.begin(LearnerPhase::align)}) {
    CHECK(status.code == Code::learner_open);
  }
  CHECK(learner.run({1, 0}, &done).ok());
  CHECK(done);
  CHECK(learner.forget().ok());
  for (const Status& status : {learner.commit(), learner.confirm(), learner.roll_back()}) {
    CHECK(status.code == Code::learner_call);
  }
  CHECK(learner.cancel().ok());
  CHECK(learner.held_out(static_cast<LearnerState>(5)).count == 0);
  CHECK(learner.trial(-1).count == 0);
  CHECK(Learner().block() == 0);
  CHECK(learner.trial(1).count == 0);
  storage.slot_bytes = slot;
  CHECK(learner.open(setup, device.memory.data(), device.memory.size()).ok());
}

TEST_CASE("cancelling and failing leave the state in force as it was") {
  const World world(40);
  for (const bool keeps : {false, true}) {
    Device device(world, 16, keeps);
    device.observe_all(80);
    const std::vector<float> before = device.logits(0);
    REQUIRE(device.learner.begin(LearnerPhase::all).ok());
    bool done = false;
    REQUIRE(device.learner.run({500, 0}, &done).ok());
    CHECK(device.learner.observe(world.frames[0].data(), 0, Role::train).code == Code::learner_call);
    CHECK(device.learner.begin(LearnerPhase::head).code == Code::learner_call);
    CHECK(device.learner.forget().code == Code::learner_call);
    CHECK(device.learner.commit().code == Code::learner_call);
    REQUIRE(device.learner.cancel().ok());
    CHECK(device.logits(0) == before);
    CHECK(device.learner.commit().code == Code::learner_call);
    device.unreadable = 7;
    CHECK(device.run(LearnerPhase::align).code == Code::frame_store);
    CHECK_FALSE(device.learner.is_running());
    device.unreadable = -1;
    device.store[9][0] = static_cast<int8_t>(device.store[9][0] ^ 1);  // written over since
    CHECK(device.run(LearnerPhase::align).code == Code::frame_store);
    CHECK(device.logits(0) == before);
  }
}

TEST_CASE("a second adaptation begins while the first one predicts, where there is room for both") {
  const World world(0);
  Device device(world), small(world, 16, false);
  for (Device* each : {&device, &small}) {
    each->observe_all(80);
    REQUIRE(each->run(LearnerPhase::all).ok());
    REQUIRE(each->learner.candidate() != LearnerState::original);
    REQUIRE(each->learner.commit().ok());
    CHECK(each->learner.on_trial());
    CHECK(each->learner.begin(LearnerPhase::align).code == Code::learner_call);
    REQUIRE(each->learner.confirm().ok());
  }
  CHECK(device.checksum() == small.checksum());
  const std::vector<float> before = device.logits(5);
  REQUIRE(device.learner.begin(LearnerPhase::align).ok());
  bool done = false;
  REQUIRE(device.learner.run({300, 0}, &done).ok());
  CHECK(device.logits(5) == before);
  // Without a storage there is no other copy of what would be written over.
  CHECK(small.learner.begin(LearnerPhase::align).code == Code::learner_call);
}

TEST_CASE("a state that is rolled back gives its place to the one before") {
  const World world(0);
  for (const bool keeps : {false, true}) {
    Device device(world, 16, keeps);
    const std::vector<float> original = device.logits(2);
    device.observe_all(80);
    REQUIRE(device.run(LearnerPhase::all).ok());
    REQUIRE(device.learner.commit().ok());
    CHECK(device.logits(2) != original);
    REQUIRE(device.learner.roll_back().ok());
    CHECK(device.logits(2) == original);
    CHECK(device.learner.in_force() == LearnerState::original);
    CHECK(device.learner.confirm().code == Code::learner_call);
  }
}

TEST_CASE("a fifth of every class is held out, whether classes take turns or follow one another") {
  const World world(3);
  constexpr int32_t classes = 4, count = 80;
  for (const bool in_turns : {true, false}) {
    std::vector<int32_t> held_out(classes), labels(count);
    LearnerSamples samples;
    AlignedBytes memory(1 << 14);
    Arena arena(memory.data(), memory.size());
    samples.take(count, arena);
    samples.open({}, world.model, false, count);
    for (int32_t i = 0; i < count; ++i) {
      Frame frame(world.frames[0].size());
      frame[0] = static_cast<int8_t>(i);
      const int32_t label = in_turns ? i % classes : i / (count / classes);
      REQUIRE(samples.add(frame.data(), label, Role::automatic).ok());
      held_out[static_cast<size_t>(label)] += samples[i].held_out;
    }
    CHECK(held_out == std::vector<int32_t>(classes, 4));
  }
}

TEST_CASE("copies count once, and stay on one side") {
  const World world(3);
  Device device(world);
  for (int32_t i = 0; i < 40; ++i) {
    const auto at = static_cast<size_t>(i % 10);
    REQUIRE(device.learner.observe(world.frames[at].data(), world.labels[at], Role::automatic).ok());
  }
  CHECK(device.learner.begin(LearnerPhase::head).code == Code::learner_samples);  // two are held out
  Device black(world);
  const Frame none(world.frames[0].size(), -128);
  for (int32_t i = 0; i < 30; ++i) REQUIRE(black.learner.observe(none.data(), -1, Role::automatic).ok());
  CHECK(black.learner.begin(LearnerPhase::all).code == Code::learner_samples);
}

TEST_CASE("labels of one class train no head") {
  const World world(4);
  Device device(world);
  const auto observe = [&](size_t i, int32_t label, Role role) {
    REQUIRE(device.learner.observe(world.frames[i].data(), label, role).ok());
  };
  for (size_t i = 0; i < 20; ++i) observe(i, 1, Role::train);
  for (size_t i = 20; i < 30; ++i) observe(i, static_cast<int32_t>(i % 2), Role::hold_out);
  CHECK(device.learner.begin(LearnerPhase::head).code == Code::learner_samples);
  CHECK(device.learner.begin(LearnerPhase::head_alone).code == Code::learner_samples);
  CHECK(device.learner.begin(LearnerPhase::epochs).code == Code::learner_samples);
  REQUIRE(device.run(LearnerPhase::all).ok());
  CHECK(device.learner.held_out(LearnerState::aligned).count == 10);
  CHECK(device.learner.held_out(LearnerState::head_alone).count == 0);
  observe(30, 0, Role::train);
  REQUIRE(device.run(LearnerPhase::head_alone).ok());
  CHECK(device.learner.held_out(LearnerState::head_alone).count == 10);
}

TEST_CASE("what a learner cannot do, it says") {
  const World world(4);
  Device device(world);
  const Frame& frame = world.frames[0];
  CHECK(device.learner.observe(frame.data(), world.model.classes(), Role::train).code == Code::label_range);
  CHECK(device.learner.observe(frame.data(), -2, Role::train).code == Code::label_range);
  CHECK(device.learner.observe(frame.data(), -1, Role::hold_out).code == Code::label_range);
  CHECK(device.learner.begin(LearnerPhase::all).code == Code::learner_samples);
  CHECK(device.learner.roll_back().code == Code::learner_call);
  device.observe_all(80);
  CHECK(device.learner.observe(frame.data(), 0, Role::train).code == Code::learner_full);
  bool done = false;
  REQUIRE(device.learner.run({0, 0}, &done).ok());
  CHECK(done);
  REQUIRE(device.learner.forget().ok());
  CHECK(device.learner.sample_count() == 0);
  LearnerSetup setup = device.setup(16, true);
  setup.clean_count -= 1;
  AlignedBytes memory(1 << 18);
  Learner learner;
  CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::learner_statistics);
  setup = device.setup(16, true);
  setup.clean = nullptr;
  REQUIRE(learner.open(setup, memory.data(), memory.size()).ok());
  CHECK(learner.begin(LearnerPhase::align).code == Code::learner_statistics);
  for (const Frame& image : world.frames) {
    if (learner.sample_count() < 16) REQUIRE(learner.observe(image.data(), -1, Role::train).ok());
  }
  CHECK(learner.begin(LearnerPhase::all).code == Code::learner_samples);  // no labels, and nothing to align to
  setup.held_out = 100;
  CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::option_value);
  setup.held_out = 16;
  setup.weights = static_cast<AlignedWeights>(words<AlignedWeights>.count);
  CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::option_value);
  setup.weights = AlignedWeights::none;
  for (const int32_t epochs : {INT32_MAX, -1}) {
    setup.epochs.epochs = epochs;
    CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::option_value);
  }
  setup.epochs.epochs = 2;
  for (const int32_t op : {-1, 0, world.model.op_count()}) {
    const TrainedLayers layers = {&op, 1, nullptr, 0};
    setup.epochs.layers = {&layers, 1};
    const bool is_layer = op == 0 && has_weights(world.model.op(0));
    CHECK(learner.open(setup, memory.data(), memory.size()).code == (is_layer ? Code::ok : Code::layer_not_trainable));
    CHECK((Learner::table_bytes(setup) > 0) == is_layer);
  }
  setup = device.setup(16, true);
  const StateStorage without_functions = {};
  setup.storage = &without_functions;
  CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::option_value);
  const World one_output(44, 80, false, AlignedWeights::none, true),
      with_stage(44, 80, true, AlignedWeights::none, true);
  Device binary(one_output);
  setup = binary.setup(16, true);
  REQUIRE(learner.open(setup, memory.data(), memory.size()).ok());
  CHECK(learner.observe(one_output.frames[0].data(), 2, Role::train).code == Code::label_range);
  binary.options.loss = Loss::cross_entropy;
  CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::label_targets);
  setup.image = with_stage.model.image().data();
  setup.image_bytes = with_stage.model.image().size();
  setup.clean = with_stage.clean.data();
  setup.chooses_input = true;
  CHECK(learner.open(setup, memory.data(), memory.size()).code == Code::learner_input);
  CHECK(learner.open(setup, memory.data() + 8, memory.size() - 8).code == Code::arena_alignment);
}

TEST_CASE("a learner without samples predicts by the image, in less memory, and learns nothing") {
  const World world(2);
  Device device(world);
  LearnerSetup setup = device.setup(0, true);
  setup.samples = 0;
  AlignedBytes memory(1 << 18);
  Learner predictor;
  REQUIRE(predictor.open(setup, memory.data(), memory.size()).ok());
  const LearnerMemory& need = predictor.need();
  CHECK(need.predict == device.learner.need().predict);
  CHECK((need.align == 0 && need.head == 0 && need.epochs == 0));
  CHECK(need.needed() < device.learner.need().needed());
  Prediction learned = {}, predicted = {};
  REQUIRE(device.learner.predict(world.frames[0].data(), &learned).ok());
  REQUIRE(predictor.predict(world.frames[0].data(), &predicted).ok());
  CHECK((predicted.label == learned.label && predicted.margin == learned.margin));
  CHECK(predictor.checksum() == 0);
  CHECK(predictor.observe(world.frames[0].data(), 0, Role::train).code == Code::learner_full);
  CHECK(predictor.begin(LearnerPhase::all).code == Code::learner_samples);
  CHECK(predictor.commit().code == Code::learner_call);
  CHECK(predictor.cancel().ok());
  const StateStorage storage = {};
  setup.storage = &storage;
  CHECK(predictor.open(setup, memory.data(), memory.size()).code == Code::option_value);
  setup.storage = nullptr;
  setup.samples = -1;
  CHECK(predictor.open(setup, memory.data(), memory.size()).code == Code::option_value);
}

TEST_CASE("filters are chosen from frames of a sensor, and are lost with the state") {
  const World world(24, 40, true);
  Device device(world, 8);
  device.observe_all(40);
  const std::vector<float> before = device.logits(3);
  REQUIRE(device.run(LearnerPhase::input).ok());
  REQUIRE(device.learner.candidate() == LearnerState::aligned);
  REQUIRE(device.learner.commit().ok());
  REQUIRE(device.learner.filters_in_force() != nullptr);
  CHECK(device.logits(3) != before);
  REQUIRE(device.learner.roll_back().ok());
  CHECK(device.learner.filters_in_force() == nullptr);
  CHECK(device.logits(3) == before);
  device.unreadable = 5;
  CHECK(device.run(LearnerPhase::input).code == Code::frame_store);
  CHECK(device.logits(3) == before);
  // Opened again, it has forgotten filters of memory that is gone.
  device.unreadable = -1;
  REQUIRE(device.run(LearnerPhase::input).ok());
  REQUIRE(device.learner.commit().ok());
  CHECK(device.logits(3) != before);
  std::memset(device.memory.data(), 0x5A, device.memory.size());
  REQUIRE(device.learner.open(device.setup(8, true), device.memory.data(), device.memory.size()).ok());
  CHECK(device.logits(3) == before);
  const World bare(24, 40);
  Device plain(bare, 8);
  plain.observe_all(40);
  CHECK(plain.learner.begin(LearnerPhase::input).code == Code::learner_input);
  CHECK(plain.learner.run_stage().code == Code::learner_call);
  CHECK(plain.learner.sensor_frame() == nullptr);
  LearnerSetup setup = plain.setup(8, true);
  setup.chooses_input = true;
  CHECK(plain.learner.open(setup, plain.memory.data(), plain.memory.size()).code == Code::learner_input);
  setup.clean = nullptr;
  CHECK(plain.learner.open(setup, plain.memory.data(), plain.memory.size()).code == Code::learner_statistics);
}
