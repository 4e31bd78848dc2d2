#include "host/inference.hpp"

#include <algorithm>
#include <cstring>

#include "core/forward.hpp"
#include "host/team.hpp"

namespace pmt::host {
namespace {

// A network ready to run on a number of workers.
class Session {
 public:
  Session(const HostModel& model, int32_t workers, int32_t images)
      : network_(model.network()), plan_(model.plan()), images_(images) {
    Arena measure;
    take(measure);
    bytes_ = measure.used();
    memory_.resize((bytes_ / sizeof(Chunk) + 1) * static_cast<size_t>(workers));
  }

  Workspace workspace(int32_t worker) {
    Arena arena(memory_.data() + static_cast<size_t>(worker) * (bytes_ / sizeof(Chunk) + 1), bytes_);
    return take(arena);
  }

  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }

 private:
  struct alignas(64) Chunk {
    uint8_t bytes[64];
  };
  Workspace take(Arena& arena) const {
    const TrainerOptions options;
    return take_workspace(arena, {&network_, &plan_, nullptr, 0, &options, images_, 0});
  }

  const Network& network_;
  const Plan& plan_;
  int32_t images_;
  size_t bytes_ = 0;
  std::vector<Chunk> memory_;
};

struct Batch {
  Session* session;
  const int8_t* images;
  int32_t count, tile, input_elements, classes;
  bool int8_logits;
  float* logits;
};

void run_tile(void* argument, int32_t index, int32_t worker) {
  const Batch& batch = *static_cast<Batch*>(argument);
  const Network& network = batch.session->network();
  const Plan& plan = batch.session->plan();
  const Model& model = *network.model;
  const Workspace workspace = batch.session->workspace(worker);
  const int32_t first = index * batch.tile;
  const int32_t images = std::min(batch.tile, batch.count - first);
  const uint32_t input = model.header().input_tensor;
  const int32_t stride = plan.size(static_cast<int32_t>(input));
  int8_t* place = workspace.tensor(plan, Pass::main, input, images);
  for (int32_t i = 0; i < images; ++i) {
    std::memcpy(place + i * stride, batch.images + static_cast<int64_t>(first + i) * batch.input_elements,
                static_cast<size_t>(batch.input_elements));
  }
  forward(network, plan, workspace, images, 0, model.op_count() - 1);
  main_logits(network, plan, workspace, images, batch.int8_logits);
  std::copy_n(workspace.logits, images * batch.classes, batch.logits + static_cast<int64_t>(first) * batch.classes);
}

}  // namespace

int32_t images_at_once(const Plan& plan, int32_t count, int32_t threads) {
  const int32_t fitting = (1 << 18) / std::max(plan.bytes(), 1);
  return std::clamp(fitting, 1, std::max(1, count / threads));
}

void batch_logits(const HostModel& model, const int8_t* images, int32_t count, bool int8_logits, int32_t threads,
                  const std::function<bool()>& should_stop, float* logits) {
  if (count == 0) return;
  const int32_t tile = images_at_once(model.plan(), count, thread_count(threads));
  const int32_t tiles = (count + tile - 1) / tile;
  Team team(std::min(thread_count(threads), tiles), should_stop);
  Session session(model, team.threads(), tile);
  Batch batch = {&session,    images, count, tile, element_count(model.model().input()), model.model().classes(),
                 int8_logits, logits};
  const Executor executor = team.executor();
  if (!executor.run(executor.context, tiles, run_tile, &batch, true)) throw StatusError{{Code::cancelled}};
}

std::vector<std::vector<int8_t>> activations(const HostModel& host, const int8_t* image) {
  const Model& model = host.model();
  Session session(host, 1, 1);
  const Workspace workspace = session.workspace(0);
  const Plan& plan = session.plan();
  std::vector<std::vector<int8_t>> tensors(static_cast<size_t>(model.tensor_count()));
  const auto keep = [&](uint32_t tensor) {
    const int8_t* data = workspace.tensor(plan, Pass::main, tensor);
    tensors[tensor].assign(data, data + element_count(model.tensor(static_cast<int32_t>(tensor))));
  };
  const uint32_t input = model.header().input_tensor;
  std::memcpy(workspace.tensor(plan, Pass::main, input), image, static_cast<size_t>(element_count(model.input())));
  keep(input);
  for (int32_t i = 0; i < model.op_count(); ++i) {
    forward(session.network(), plan, workspace, 1, i, i + 1);
    keep(model.op(i).output);
  }
  return tensors;
}

}  // namespace pmt::host
