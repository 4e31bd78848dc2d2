// The solved head against the definition of what it minimizes, in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/crc32.hpp"
#include "core/learn/head_solver.hpp"
#include "core/zo/loss.hpp"
#include "reference/training_step.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"
#include "tests/shuffled_executor.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Doubles = std::vector<double>;

size_t at(int32_t index) { return static_cast<size_t>(index); }

// A network that is a head, and samples whose features depend on their class.
struct Case {
  Case(RandomSource& random, Loss of, int32_t rows, int32_t inputs, int32_t outputs)
      : loss(of), count(rows), features(inputs), classes(outputs) {
    const int32_t offset = random.integer(-100, 20);
    const std::vector<int8_t> centers = random.bytes(int64_t{classes} * features, -20, 20);
    for (int32_t i = 0; i < count; ++i) {
      labels.push_back(random.integer(0, classes - 1));
      for (int32_t f = 0; f < features; ++f) {
        const int32_t spread = f % 4 == 0 ? 25 : 6;
        const int32_t center = f == 1 ? 0 : centers[at(labels.back() * features + f)];  // feature 1 is constant
        const int32_t value = f == 1 ? offset : offset + center + random.integer(-spread, spread);
        values.push_back(static_cast<int8_t>(std::clamp(value, -128, 127)));
      }
      folds.push_back(static_cast<uint8_t>(i % 3));
    }
    if (loss != Loss::cross_entropy) {
      for (int32_t i = 0; i < count * classes; ++i) targets.push_back(static_cast<float>(random.real(0.0, 1.0)));
    }
    ImageBuilder builder({{1, 1, features, 0.02f, -100}, {1, 1, classes, 0.1f, 0}});
    LinearData data = {random.bytes(int64_t{classes} * features, -127, 127), {}, {}};
    for (int32_t k = 0; k < classes; ++k) {
      data.bias.push_back(random.integer(-500, 500));
      data.scales.push_back(static_cast<float>(random.real(0.001, 0.01)));
    }
    builder.add_op(plain_op(OpKind::fully_connected, 0, 1), data);
    model.take(builder.build());
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  static bool read(void* context, int32_t index, int8_t* row, int32_t* label) {
    const Case& c = *static_cast<const Case*>(context);
    std::copy_n(c.values.data() + int64_t{index} * c.features, c.features, row);
    *label = c.targets.empty() ? c.labels[at(index)] : no_label;
    return index != c.unreadable;
  }
  HeadSamples samples() {
    return {{this, read, targets.empty() ? nullptr : targets.data()}, count, folds.data(), 3, loss};
  }
  WritableLayer layer() {
    const OpRecord& op = model.op(0);
    return {const_cast<int8_t*>(model.weights(op)), const_cast<int32_t*>(model.bias(op)),
            const_cast<float*>(model.weight_scales(op))};
  }
  HeadSetup setup(int32_t block, const Executor& executor = sequential_executor()) {
    return {&model, 0, layer(), samples(), block, executor};
  }

  Loss loss;
  int32_t count, features, classes, unreadable = -1;
  std::vector<int8_t> values;
  std::vector<int32_t> labels;
  std::vector<uint8_t> folds;
  std::vector<float> targets;
  OwnedModel model;
};

// A solver on memory of exactly the size that it asks for.
struct OpenSolver {
  explicit OpenSolver(const HeadSetup& setup) {
    REQUIRE(solver.open(setup, nullptr, 0).code == Code::arena_too_small);
    memory = AlignedBytes(solver.bytes_needed(), 0xA5);
    REQUIRE(solver.open(setup, memory.data(), memory.size() - 1).code == Code::arena_too_small);
    REQUIRE(solver.open(setup, memory.data(), memory.size()).ok());
  }

  AlignedBytes memory{0};
  HeadSolver solver;
};

std::vector<uint8_t> parameters(const Case& c) {
  return {c.model.image().data(), c.model.image().data() + c.model.image().size()};
}

// The objective on memory of its own, its features measured.
struct OpenObjective {
  explicit OpenObjective(Case& c) {
    const HeadObjectiveSetup setup = {c.features, c.classes, c.samples(), 5, sequential_executor()};
    Arena measure;
    objective.open(setup, measure);
    memory = AlignedBytes(measure.used(), 0xA5);
    Arena arena(memory.data(), memory.size());
    objective.open(setup, arena);
    std::vector<float> scratch(at(objective.coefficients()));
    REQUIRE(objective.measure_features(scratch.data()).ok());
  }

  AlignedBytes memory{0};
  HeadObjective objective;
};

// The mean loss by its definition.
double mean_loss(const Case& c, const HeadObjective& objective, const Doubles& head, const SampleRange& range) {
  double sum = 0.0;
  int32_t found = 0;
  for (int32_t i = 0; i < c.count; ++i) {
    if ((c.folds[at(i)] == range.fold) != range.held_out) continue;
    ++found;
    auto logits = reference::Vector<double>::from_shape({at(c.classes)});
    auto targets = reference::Vector<double>::from_shape({at(c.classes)});
    for (int32_t k = 0; k < c.classes; ++k) {
      double logit = head[at(c.features * objective.stride() + k)];
      for (int32_t f = 0; f < c.features; ++f) {
        const double value = c.values[at(i * c.features + f)];
        logit += head[at(f * objective.stride() + k)] * (value - objective.mean(f)) / objective.spread(f);
      }
      logits[at(k)] = objective.counts(k) ? logit : -1e30;
      targets[at(k)] = c.targets.empty() ? 0.0 : c.targets[at(i * c.classes + k)];
    }
    if (c.loss == Loss::cross_entropy) sum += reference::cross_entropy(logits, at(c.labels[at(i)]));
    if (c.loss == Loss::squared_error) sum += reference::squared_error(logits, targets);
    if (c.loss == Loss::binary_cross_entropy) sum += reference::binary_cross_entropy(logits, targets);
  }
  return sum / found;
}

constexpr Loss losses[] = {Loss::cross_entropy, Loss::squared_error, Loss::binary_cross_entropy};

}  // namespace

TEST_CASE("features are centered, and their spread is at least half of the common one") {
  RandomSource random(1);
  Case c(random, Loss::cross_entropy, 40, 7, 3);
  const OpenObjective open(c);
  Doubles variances;
  for (int32_t f = 0; f < c.features; ++f) {
    double sum = 0.0, squares = 0.0;
    for (int32_t i = 0; i < c.count; ++i) {
      const double value = c.values[at(i * c.features + f)];
      sum += value;
      squares += value * value;
    }
    CHECK(open.objective.mean(f) == doctest::Approx(sum / c.count));
    variances.push_back(squares / c.count - sum / c.count * sum / c.count);
  }
  double mean = 0.0;
  for (const double variance : variances) mean += variance / c.features;
  CHECK(variances[1] == doctest::Approx(0.0));
  for (int32_t f = 0; f < c.features; ++f) {
    CHECK(open.objective.spread(f) == doctest::Approx(std::sqrt((variances[at(f)] + mean) / 2.0)));
  }
}

TEST_CASE("loss, gradient and curvature are those of the definition") {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomSource random(seed);
    Case c(random, losses[seed % 3], random.integer(3, 40), random.integer(2, 20), random.integer(2, 21));
    OpenObjective open(c);
    HeadObjective& objective = open.objective;
    const SampleRange range = {random.pick<int32_t>({0, 1, 2, no_fold}), false};
    std::vector<float> head(at(objective.coefficients())), direction(head.size()), gradient(head.size());
    Doubles exact(head.size()), way(head.size());
    for (int32_t f = 0; f <= c.features; ++f) {
      for (int32_t k = 0; k < c.classes; ++k) {
        const size_t i = at(f * objective.stride() + k);
        exact[i] = head[i] = static_cast<float>(random.real(-0.3, 0.3));
        way[i] = direction[i] = static_cast<float>(random.real(-1.0, 1.0));
      }
    }
    float loss = 0.0f, of_gradient = 0.0f, curvature = 0.0f;
    REQUIRE(objective.loss(range, head.data(), &loss).ok());
    REQUIRE(objective.gradient(range, head.data(), gradient.data(), &of_gradient).ok());
    REQUIRE(objective.curvature(range, head.data(), direction.data(), &curvature).ok());
    const auto moved = [&](double distance) {
      Doubles there = exact;
      for (size_t i = 0; i < there.size(); ++i) there[i] += distance * way[i];
      return mean_loss(c, objective, there, range);
    };
    CHECK(loss == doctest::Approx(moved(0.0)).epsilon(1e-5));
    CHECK(of_gradient == doctest::Approx(loss).epsilon(1e-6));
    const double step = 1e-4;
    double slope = 0.0;
    for (size_t i = 0; i < head.size(); ++i) slope += way[i] * static_cast<double>(gradient[i]);
    CHECK(slope == doctest::Approx((moved(step) - moved(-step)) / (2.0 * step)).epsilon(1e-3));
    CHECK(curvature == doctest::Approx((moved(step) - 2.0 * moved(0.0) + moved(-step)) / (step * step)).epsilon(2e-3));
  }
}

TEST_CASE("a fit ends where the penalized gradient vanishes") {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    RandomSource random(100 + seed);
    Case c(random, losses[seed % 3], 60, random.integer(2, 24), random.integer(2, 9));
    OpenObjective open(c);
    HeadObjective& objective = open.objective;
    const std::vector<float> units(at(c.classes), 0.001f), biases(at(c.classes), 0.1f);
    const HeadPrior prior = {c.model.weights(c.model.op(0)), units.data(), biases.data(), 0.5f};
    const size_t count = at(objective.coefficients());
    std::vector<float> head(count), direction(count), gradient(count), last(count);
    const float strength = 0.3f;
    HeadFit fit;
    fit.start(objective, {1, false}, prior, strength, {200, 1e-5f},
              {head.data(), direction.data(), gradient.data(), last.data()});
    for (bool done = false; !done;) REQUIRE(fit.step(&done).ok());
    float loss = 0.0f;
    REQUIRE(objective.gradient({1, false}, head.data(), gradient.data(), &loss).ok());
    CHECK(fit.loss() == doctest::Approx(loss).epsilon(1e-5));
    double square = 0.0;
    for (int32_t f = 0; f <= c.features; ++f) {
      for (int32_t k = 0; k < objective.stride(); ++k) {
        const size_t i = at(f * objective.stride() + k);
        const float pull = strength / static_cast<float>(c.classes) * (head[i] - prior.at(objective, f, k));
        const double slope = k < c.classes ? gradient[i] + pull : head[i];  // what fills a row stays 0
        square += slope * slope;
      }
    }
    CHECK(std::sqrt(square) < 1e-4);
  }
}

TEST_CASE("the bytes of a head do not depend on blocks, workers, the order of tasks or the processor") {
  const uint32_t known[] = {2582354840u, 8191182u, 684606670u};
  for (const Loss loss : losses) {
    std::vector<std::vector<uint8_t>> found;
    std::vector<float> strengths;
    for (int32_t way = 0; way < 4; ++way) {
      RandomSource random(7);
      Case c(random, loss, 150, 21, 6);
      const int32_t blocks[] = {1, 8, 64, 150};
      ShuffledExecutor workers(5, 3, way % 2 == 0 ? TaskOrder::shuffled : TaskOrder::reversed);
      OpenSolver open(c.setup(blocks[way], way == 0 ? sequential_executor() : workers.executor()));
      float strength = 0.0f;
      REQUIRE(open.solver.choose_strength(&strength).ok());
      REQUIRE(open.solver.solve(strength).ok());
      found.push_back(parameters(c));
      strengths.push_back(strength);
    }
    // On every processor.
    CHECK(crc32(found[0].data(), found[0].size()) == known[static_cast<size_t>(loss)]);
    for (size_t way = 1; way < found.size(); ++way) {
      CHECK(found[way] == found[0]);
      CHECK(strengths[way] == strengths[0]);
    }
  }
}

TEST_CASE("weights fill their range, and the int8 head has the logits of the solution") {
  RandomSource random(3);
  Case c(random, Loss::cross_entropy, 200, 30, 5);
  OpenSolver open(c.setup(8));
  REQUIRE(open.solver.solve(0.1f).ok());
  const WritableLayer layer = c.layer();
  int32_t right = 0;
  for (int32_t k = 0; k < c.classes; ++k) {
    const int8_t* weights = layer.weights + k * c.features;
    const auto largest =
        std::max_element(weights, weights + c.features, [](int8_t a, int8_t b) { return std::abs(a) < std::abs(b); });
    CHECK(std::abs(*largest) == 127);
  }
  for (int32_t i = 0; i < c.count; ++i) {
    std::vector<double> logits;
    for (int32_t k = 0; k < c.classes; ++k) {
      double sum = layer.bias[k];
      for (int32_t f = 0; f < c.features; ++f) {
        sum += layer.weights[k * c.features + f] * (c.values[at(i * c.features + f)] + 100.0);
      }
      logits.push_back(sum * layer.weight_scales[k]);
    }
    right += std::max_element(logits.begin(), logits.end()) - logits.begin() == c.labels[at(i)] ? 1 : 0;
  }
  CHECK(right == 200);
}

TEST_CASE("256 samples of 160 features and ten classes take less than 80 KB") {
  RandomSource random(4);
  Case c(random, Loss::cross_entropy, 256, 160, 10);
  HeadSolver solver;
  CHECK(solver.open(c.setup(4), nullptr, 0).code == Code::arena_too_small);
  const size_t samples = c.values.size() + 2 * c.labels.size();  // a byte for the label, one for the fold
  CHECK(solver.bytes_needed() + samples == 76176);
}

TEST_CASE("a head that nothing asks to change stays, as do features that say nothing") {
  RandomSource random(5);
  Case c(random, Loss::cross_entropy, 90, 12, 4);
  std::fill(c.labels.begin(), c.labels.end(), 0);  // one class
  const WritableLayer layer = c.layer();
  std::fill_n(layer.weights, c.classes * c.features, int8_t{0});
  std::fill_n(layer.bias, c.classes, 0);
  const std::vector<float> scales(layer.weight_scales, layer.weight_scales + c.classes);
  for (int8_t& value : c.values) value = 7;  // nothing varies
  OpenSolver open(c.setup(8));
  REQUIRE(open.solver.solve(1.0f).ok());
  for (int32_t i = 0; i < c.classes * c.features; ++i) CHECK(layer.weights[i] == 0);
  CHECK(std::vector<float>(layer.weight_scales, layer.weight_scales + c.classes) == scales);
  CHECK(layer.bias[0] > 0);
  for (int32_t k = 1; k < c.classes; ++k) CHECK(layer.bias[k] < 0);
}

// Weights less their zeros, and the bias, times the scale of a class.
Doubles coefficients(const WritableLayer& layer, int32_t features, int32_t k) {
  Doubles found;
  for (int32_t f = 0; f < features; ++f) found.push_back(layer.weights[k * features + f] * layer.weight_scales[k]);
  found.push_back(layer.bias[k] * layer.weight_scales[k]);
  return found;
}

TEST_CASE("classes that no label names keep their logits, new ones do not") {
  RandomSource random(10);
  Case c(random, Loss::cross_entropy, 120, 12, 5);
  float strength = 0.0f;
  {
    OpenSolver of_all(c.setup(8));
    REQUIRE(of_all.solver.choose_strength(&strength).ok());
    CHECK(strength < default_head_strength);
  }
  for (int32_t& label : c.labels) label %= 2;  // neither 2, 3 nor 4
  const WritableLayer layer = c.layer();
  std::fill_n(layer.weights + 4 * c.features, c.features, int8_t{0});  // 4 is new
  std::vector<Doubles> before;
  for (int32_t k = 0; k < c.classes; ++k) before.push_back(coefficients(layer, c.features, k));
  OpenSolver open(c.setup(8));
  REQUIRE(open.solver.choose_strength(&strength).ok());
  CHECK(strength == default_head_strength);  // at least
  REQUIRE(open.solver.solve(strength).ok());
  for (int32_t k = 0; k < c.classes; ++k) {
    const Doubles after = coefficients(layer, c.features, k);
    double farthest = 0.0;
    for (size_t f = 0; f < after.size() - 1; ++f) farthest = std::max(farthest, std::abs(after[f] - before[at(k)][f]));
    CAPTURE(k);
    if (k == 2 || k == 3) CHECK(farthest <= static_cast<double>(layer.weight_scales[k]) / 2.0 * 1.001);
    if (k < 2 || k == 4) CHECK(farthest > 2.0 * static_cast<double>(layer.weight_scales[k]));
  }
}

TEST_CASE("the parameters stay as they were where solving ends early") {
  RandomSource random(6);
  Case c(random, Loss::cross_entropy, 60, 9, 4);
  const std::vector<uint8_t> before = parameters(c);
  float strength = 0.0f;
  SUBCASE("the caller stops") {
    Executor stops = sequential_executor();
    stops.run = [](void*, int32_t, Executor::Task, void*, bool may_stop) { return !may_stop; };
    OpenSolver open(c.setup(8, stops));
    CHECK(open.solver.choose_strength(&strength).code == Code::cancelled);
    CHECK(open.solver.solve(1.0f).code == Code::cancelled);
  }
  SUBCASE("a sample cannot be read") {
    c.unreadable = 41;
    OpenSolver open(c.setup(8));
    const Status status = open.solver.solve(1.0f);
    CHECK(status.code == Code::sample_unreadable);
    CHECK(status.index() == 41);
  }
  SUBCASE("a label is no class") {
    c.labels[13] = 4;
    OpenSolver open(c.setup(8));
    const Status status = open.solver.choose_strength(&strength);
    CHECK(status.code == Code::label_range);
    CHECK(status.index() == 13);
  }
  CHECK(parameters(c) == before);
}

TEST_CASE("what cannot be solved is refused") {
  RandomSource random(8);
  Case c(random, Loss::cross_entropy, 20, 6, 3);
  AlignedBytes memory(1 << 16);
  HeadSolver solver;
  const auto code = [&](const HeadSetup& setup) { return solver.open(setup, memory.data(), memory.size()).code; };
  HeadSetup setup = c.setup(8);
  CHECK(solver.open(setup, memory.data() + 4, memory.size() - 4).code == Code::arena_alignment);
  setup.samples.loss = Loss::entropy;
  CHECK(code(setup) == Code::option_loss);
  setup = c.setup(8);
  const std::vector<float> targets(60, 0.5f);
  setup.samples.source.targets = targets.data();
  CHECK(code(setup) == Code::label_targets);
  setup = c.setup(8);
  setup.samples.count = 0;
  CHECK(code(setup) == Code::batch_size);
  CHECK(code(c.setup(0)) == Code::batch_size);
}

TEST_CASE("without folds the strength is the default") {
  RandomSource random(9);
  Case c(random, Loss::cross_entropy, 20, 6, 3);
  HeadSetup setup = c.setup(8);
  setup.samples.folds = nullptr;
  OpenSolver open(setup);
  float strength = 0.0f;
  REQUIRE(open.solver.choose_strength(&strength).ok());
  CHECK(strength == default_head_strength);
}
