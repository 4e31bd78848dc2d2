// Every buffer of a workspace is as large as its users write. The buffers are neighbors in one
// arena, so neither a guard around it nor the address sanitizer sees one run into the next. Behind
// the last one, the logits, the memory ends.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/zo/estimated.hpp"
#include "tests/random_network.hpp"
#include "tests/random_options.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct Rooms {
  int64_t activations, scratch, weight_tile, bias_tile, signs, sign_sums, streams, head_gradient;
};

// In bytes, from the start of each buffer to the next one.
Rooms rooms_of(const Workspace& workspace) {
  const void* starts[] = {workspace.activations, workspace.scratch,       workspace.weight_tile,
                          workspace.bias_tile,   workspace.signs,         workspace.sign_sums,
                          workspace.streams,     workspace.head_gradient, workspace.logits};
  const auto room = [&](const void* start) {
    int64_t least = INT64_MAX;
    for (const void* other : starts) {
      const int64_t distance = static_cast<const uint8_t*>(other) - static_cast<const uint8_t*>(start);
      if (distance > 0) least = std::min(least, distance);
    }
    return least == INT64_MAX ? 0 : least;
  };
  return {room(starts[0]), room(starts[1]), room(starts[2]), room(starts[3]),
          room(starts[4]), room(starts[5]), room(starts[6]), room(starts[7])};
}

// Inputs that an outer product takes at once; depthwise layers do without.
int64_t patch_taps(const Model& model, const Layer& layer) {
  const OpRecord& op = model.op(layer.op);
  const TensorRecord& in = model.input_of(op);
  if (op.kind == OpKind::depthwise_conv2d) return 0;
  if (op.kind == OpKind::fully_connected) return element_count(in);
  return static_cast<int64_t>(op.kernel_h) * op.kernel_w * in.channels;
}

// Signs drawn at once: a row of nodes, or perturbed weights, a whole tile where it is packed and else 1,024 of it,
// and a chunk of 512 for their gradient.
int64_t most_signs(const Model& model, const Layer& layer, int64_t tile, bool packed) {
  if (layer.estimator == Estimator::weight_perturbation) {
    return std::max<int64_t>(packed ? tile : std::min<int64_t>(tile, 1024), 512);
  }
  const TensorRecord& out = model.output_of(model.op(layer.op));
  return static_cast<int64_t>(out.width) * out.channels;
}

void check_rooms(const Model& model, const TrainerOptions& options) {
  TrainingRun run(model, options, trainable_layers(model), 1, {});
  const Trainer& trainer = run.trainer();
  const Rooms rooms = rooms_of(trainer.workspace(0));
  CHECK(rooms.activations >= trainer.plan().bytes());
  CHECK(rooms.streams >= static_cast<int64_t>(sizeof(SignStream)) * options.queries);
  CHECK(rooms.head_gradient >= 4 * model.classes());
  for (int32_t i = 0; i < model.op_count(); ++i) {
    CHECK(rooms.scratch >= op_scratch_bytes(trainer.network(), model.op(i)));
  }
  for (int32_t i = 0; i < trainer.layer_count(); ++i) {
    const Layer& layer = trainer.layer(i);
    CHECK(rooms.scratch >= 2 * patch_taps(model, layer));
    const int32_t channels = weight_tile_channels(trainer.network(), trainer.plan(), layer, options);
    const int64_t tile = static_cast<int64_t>(channels) * (layer.weight_count / layer.channels);
    if (layer.estimator == Estimator::weight_perturbation) {
      CHECK(rooms.weight_tile >= tile);
      CHECK(rooms.bias_tile >= 4 * channels);
    }
    if (layer.estimator == Estimator::closed_form) continue;
    const int64_t signs = most_signs(model, layer, tile, packs(*trainer.network().kernels));
    CHECK(rooms.signs >= signs);
    const int32_t pooled = node_columns(layer) < 512 ? node_columns(layer) : 512;
    const bool whole = layer.estimator == Estimator::node_perturbation;
    const bool one_a_channel = layer.estimator == Estimator::pooled_perturbation;
    CHECK(rooms.sign_sums >= 4 * (whole ? signs : (one_a_channel ? pooled : 512)));
  }
}

}  // namespace

TEST_CASE("every buffer of a workspace has room for its users") {
  RandomSource random(60);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const OwnedModel model(random.chance(2) ? random_dag(random, random.integer(0, 6))
                                            : random_network(random, random.integer(0, 4), Head::fully_connected));
    TrainerOptions options;
    options.queries = random.integer(1, 40);
    options.rule = random_rule(random);
    check_rooms(model, options);
  }
}
