// A learner on a device of its own memory, and frames for it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/crc32.hpp"
#include "core/learner/learner.hpp"
#include "core/zo/loss_units.hpp"
#include "tests/meter.hpp"
#include "tests/random_network.hpp"

namespace pmt::tests {

using Frame = std::vector<int8_t>;

// Frames that a network has learned, for it says their labels, and the same as a worse sensor sees them.
struct World {
  explicit World(uint64_t seed, int32_t count = 80, bool has_stage = false,
                 AlignedWeights aligned = AlignedWeights::none, bool one_output = false)
      : random(seed), model(random_bottlenecks(random, 3, has_stage, one_output)), weights(aligned), blocks(1) {
    for (int32_t i = 1; i < model.op_count(); ++i) {
      if (has_weights(model.op(i)) && (i % 2 == 0 || i + 1 == model.op_count())) blocks[0].push_back(i);
    }
    const bool noisy = weights == AlignedWeights::reliability;
    Samples samples = random_samples(random, model, count);
    if (noisy) smooth(samples);
    measure(samples);
    if (weights != AlignedWeights::none) measure_windows(samples);
    std::vector<float> outputs;
    for (const std::vector<int8_t>& clean : samples.images) {
      Frame worse = clean;
      for (int8_t& value : worse) {
        const int32_t noise = noisy ? random.integer(-30, 30) : 0;
        value = static_cast<int8_t>(std::clamp(value / 2 + 30 + noise, -128, 127));
      }
      frames.push_back(has_stage ? pixels_of(worse) : worse);
      const std::vector<float> logits = logits_of(clean);
      outputs.push_back(logits[0]);
      labels.push_back(arg_max(logits.data(), model.classes()));
    }
    if (one_output) label_halves(outputs);
  }
  // Labels 0 and 1, below the median of the outputs and from it on.
  void label_halves(const std::vector<float>& outputs) {
    std::vector<float> sorted = outputs;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < outputs.size(); ++i) labels[i] = outputs[i] >= sorted[sorted.size() / 2] ? 1 : 0;
  }
  // Each layer becomes a block of its own.
  void cut_blocks() {
    const std::vector<int32_t> layers = blocks[0];
    blocks.clear();
    for (const int32_t layer : layers) blocks.push_back({layer});
  }
  // Ramps, whose windows tell the noise of other images.
  void smooth(Samples& samples) {
    const TensorRecord& in = model.input();
    for (std::vector<int8_t>& image : samples.images) {
      const int32_t level = random.integer(-80, 80), tilt = random.integer(-9, 9);
      for (size_t i = 0; i < image.size(); ++i) {
        const auto at = static_cast<int32_t>(i);
        const int32_t x = at / in.channels % in.width, y = at / in.channels / in.width;
        image[i] = static_cast<int8_t>(std::clamp(level + tilt * x - 3 * y + 9 * (at % in.channels), -128, 127));
      }
    }
  }
  void measure(const Samples& samples) {
    OpenMeter<StatisticsMeter> open(model);
    for (int32_t i = 0; i < model.op_count(); ++i) {
      if (!is_aligned_op(model, i)) continue;
      const TensorRecord& out = model.output_of(model.op(i));
      std::vector<ChannelStatistics> found(static_cast<size_t>(out.channels), {0.0f, 32.0f * out.scale});
      REQUIRE(open.meter().measure(i, samples.count(), source_of(samples), 3, found.data(), found.data()).ok());
      clean.insert(clean.end(), found.begin(), found.end());
    }
  }
  void measure_windows(const Samples& samples) {
    OpenMeter<WindowMeter> open(model);
    std::vector<float> all;
    for (int32_t i = 0; i < model.op_count(); ++i) {
      if (!is_window_op(model, i)) continue;
      const WindowGroups groups = window_groups(model, i);
      const auto count = static_cast<size_t>(groups.count * groups.values());
      const std::vector<float> centers(static_cast<size_t>(model.input_of(model.op(i)).channels));
      std::vector<float> means(centers.size()), values(count);
      const SampleSource source = source_of(samples);
      REQUIRE(open.meter().measure(i, samples.count(), source, centers.data(), means.data(), values.data()).ok());
      all.insert(all.end(), means.begin(), means.end());
      all.insert(all.end(), values.begin(), values.end());
    }
    REQUIRE(!all.empty());
    all.resize((all.size() + 1) / 2 * 2);
    for (size_t i = 0; i < all.size(); i += 2) clean.push_back({all[i], all[i + 1]});
  }
  // The sensor's frame that its stage turns into an input.
  Frame pixels_of(const Frame& input) const {
    Frame pixels = input;
    const auto channels = static_cast<size_t>(model.input().channels);
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<int8_t>(input[i] + 128 - static_cast<int32_t>(i % channels));
    }
    return pixels;
  }
  std::vector<float> logits_of(const Frame& frame) {
    Arena measured;
    Predictor predictor;
    AlignedBytes tables(1 << 16), activations(1 << 18);
    Arena arena(tables.data(), tables.size());
    REQUIRE(predictor.open({&model, &portable_kernels(), nullptr, 0}, arena).ok());
    predictor.place(activations.data());
    std::copy(frame.begin(), frame.end(), predictor.input());
    predictor.run();
    return {predictor.logits(), predictor.logits() + model.classes()};
  }

  RandomSource random;
  OwnedModel model;
  AlignedWeights weights;
  std::vector<std::vector<int32_t>> blocks;  // that a device chooses among
  int32_t epochs = 2;
  std::vector<ChannelStatistics> clean;  // and the windows' floats, in pairs
  std::vector<Frame> frames;
  std::vector<int32_t> labels;
};

struct Device {
  explicit Device(const World& of, int32_t most_held_out = 16, bool keeps_confirmed = true, int32_t missing = 0)
      : world(of), held_out(most_held_out), store(of.frames.size()), memory(0), external(0) {
    LearnerSetup tables = setup(held_out, keeps_confirmed);
    AlignedBytes first(Learner::table_bytes(tables));
    const Code measured = learner.open(tables, first.data(), first.size()).code;
    REQUIRE((measured == Code::ok || measured == Code::arena_too_small));
    const size_t needed = learner.need().needed();
    memory = AlignedBytes(needed, 0xA5);
    opened = learner.open(tables, memory.data(), needed - static_cast<size_t>(missing));
  }
  LearnerSetup setup(int32_t most_held_out, bool keeps_confirmed) {
    options.queries = 6;
    options.step = Step::normalized;
    options.loss = world.model.classes() == 1 ? Loss::binary_cross_entropy : Loss::cross_entropy;
    blocks.clear();
    for (const std::vector<int32_t>& layers : world.blocks) {
      blocks.push_back({layers.data(), static_cast<int32_t>(layers.size()), nullptr, 0});
    }
    LearnerSetup s = {};
    s.image = world.model.image().data();
    s.image_bytes = world.model.image().size();
    s.clean = world.clean.data();
    s.clean_count = static_cast<int32_t>(world.clean.size());
    s.weights = world.weights;
    s.kernels = &portable_kernels();
    s.frames = {this,
                [](void* context, int32_t index, void* frame) {
                  Device& self = *static_cast<Device*>(context);
                  if (index == self.unreadable) return false;
                  ++self.reads;
                  const Frame& stored = self.store[static_cast<size_t>(index)];
                  std::memcpy(frame, stored.data(), stored.size());
                  return true;
                },
                [](void* context, int32_t index, const void* frame) {
                  Device& self = *static_cast<Device*>(context);
                  Frame& stored = self.store[static_cast<size_t>(index)];
                  stored.resize(self.world.frames[0].size());
                  std::memcpy(stored.data(), frame, stored.size());
                  return true;
                }};
    s.chooses_input = world.model.stage() != nullptr;
    s.samples = static_cast<int32_t>(world.frames.size());
    s.held_out = most_held_out;
    s.keeps_confirmed = keeps_confirmed;
    s.milliseconds = [](void* clock) { return static_cast<Device*>(clock)->now++; };
    s.clock = this;
    s.epochs = {&options, {blocks.data(), static_cast<int32_t>(blocks.size())}, 3, world.epochs, 0.5f, 0.1f};
    return s;
  }
  // Opens it again, with memory for activations.
  Status open_with_external(size_t missing = 0) {
    LearnerSetup with = setup(held_out, true);
    with.keeps_activations = true;
    REQUIRE(learner.open(with, memory.data(), memory.size()).code == Code::arena_too_small);
    memory = AlignedBytes(learner.need().needed(), 0xA5);
    external = AlignedBytes(learner.need().external, 0xA5);
    with.external = external.data();
    with.external_bytes = external.size() - missing;
    return learner.open(with, memory.data(), memory.size());
  }
  void observe_all(int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      REQUIRE(learner.observe(world.frames[at].data(), world.labels[at], Role::automatic).ok());
    }
  }
  Status run(LearnerPhase phase) {
    PMT_RETURN_IF_ERROR(learner.begin(phase));
    bool done = false;
    return learner.run({0, 0}, &done);
  }
  // Of the parameters in force.
  uint32_t checksum() const {
    const Model& model = world.model;
    std::vector<WritableLayer> layers(static_cast<size_t>(model.op_count()));
    learner.fill_in_force(layers.data());
    uint32_t crc = 0;
    const auto add = [&](const void* bytes, size_t count) {
      if (bytes != nullptr) crc = crc32(static_cast<const uint8_t*>(bytes), count, crc);
    };
    for (int32_t i = 0; i < model.op_count(); ++i) {
      const WritableLayer& layer = layers[static_cast<size_t>(i)];
      const auto channels = 4 * static_cast<size_t>(model.output_of(model.op(i)).channels);
      add(layer.weights, static_cast<size_t>(weight_count(model, model.op(i))));
      add(layer.bias, channels);
      add(layer.weight_scales, channels);
    }
    return crc;
  }
  Prediction predict(size_t index) {
    const Frame& frame = world.frames[index];
    Prediction prediction = {};
    if (world.model.stage() == nullptr) {
      REQUIRE(learner.predict(frame.data(), &prediction).ok());
      return prediction;
    }
    std::memcpy(learner.sensor_frame(), frame.data(), frame.size());
    REQUIRE(learner.run_stage().ok());
    REQUIRE(learner.predict(learner.frame(), &prediction).ok());
    return prediction;
  }
  std::vector<float> logits(size_t frame) {
    const Prediction prediction = predict(frame);
    return {prediction.logits, prediction.logits + world.model.classes()};
  }
  int32_t correct() {
    int32_t found = 0;
    for (size_t i = 0; i < world.frames.size(); ++i) {
      found += predict(i).label == world.labels[i] ? 1 : 0;
    }
    return found;
  }

  const World& world;
  int32_t held_out;
  std::vector<Frame> store;
  AlignedBytes memory, external;
  Learner learner;
  Status opened;
  int32_t unreadable = -1, reads = 0;
  uint32_t now = 0;
  TrainerOptions options;
  std::vector<TrainedLayers> blocks;
};

struct Outcome {
  uint32_t checksum;
  LearnerState state;
  std::vector<int64_t> losses;

  bool operator==(const Outcome& other) const {
    return checksum == other.checksum && state == other.state && losses == other.losses;
  }
};

inline Outcome outcome(Device& device) {
  Outcome found = {0, device.learner.candidate(), {}};
  for (int32_t s = 0; s < learner_states; ++s) {
    found.losses.push_back(device.learner.held_out(static_cast<LearnerState>(s)).loss_sum);
  }
  if (found.state != LearnerState::original) {
    REQUIRE(device.learner.commit().ok());
    REQUIRE(device.learner.confirm().ok());
  }
  found.checksum = device.checksum();
  return found;
}

}  // namespace pmt::tests
