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
  Session(const HostModel& model, int32_t workers)
      : parameters_(static_cast<size_t>(model.model().op_count())),
        plan_table_(static_cast<size_t>(Plan::table_size(model.model()))) {
    bind_parameters(model.model(), parameters_.data());
    network_ = {&model.model(), &host_kernels(), parameters_.data()};
    plan_.make(model.model(), nullptr, 0, plan_table_.data());
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
  Workspace take(Arena& arena) const { return take_workspace(arena, network_, plan_, nullptr, 0, TrainerOptions{}); }

  std::vector<Parameters> parameters_;
  std::vector<int32_t> plan_table_;
  Network network_ = {};
  Plan plan_;
  size_t bytes_ = 0;
  std::vector<Chunk> memory_;
};

struct Batch {
  Session* session;
  const int8_t* images;
  int32_t input_elements, classes;
  bool int8_logits;
  float* logits;
};

void run_image(void* argument, int32_t index, int32_t worker) {
  const Batch& batch = *static_cast<Batch*>(argument);
  const Network& network = batch.session->network();
  const Plan& plan = batch.session->plan();
  const Model& model = *network.model;
  const Workspace workspace = batch.session->workspace(worker);
  std::memcpy(workspace.tensor(plan, Pass::main, model.header().input_tensor),
              batch.images + static_cast<int64_t>(index) * batch.input_elements,
              static_cast<size_t>(batch.input_elements));
  forward(network, plan, workspace, 0, model.op_count() - 1);
  main_logits(network, plan, workspace, batch.int8_logits);
  std::copy_n(workspace.logits, batch.classes, batch.logits + static_cast<int64_t>(index) * batch.classes);
}

}  // namespace

void batch_logits(const HostModel& model, const int8_t* images, int32_t count, bool int8_logits, int32_t threads,
                  const std::function<bool()>& should_stop, float* logits) {
  Team team(threads, should_stop);
  Session session(model, team.threads());
  Batch batch = {&session, images, element_count(model.model().input()), model.model().classes(), int8_logits, logits};
  const Executor executor = team.executor();
  if (!executor.run(executor.context, count, run_image, &batch, true)) throw StatusError{{Code::cancelled}};
}

std::vector<std::vector<int8_t>> activations(const HostModel& host, const int8_t* image) {
  const Model& model = host.model();
  Session session(host, 1);
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
    forward(session.network(), plan, workspace, i, i + 1);
    keep(model.op(i).output);
  }
  return tensors;
}

}  // namespace pmt::host
