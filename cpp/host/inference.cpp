#include "host/inference.hpp"

#include <algorithm>
#include <cstring>

#include "core/net/forward.hpp"
#include "host/image_batches.hpp"
#include "host/team.hpp"

namespace pmt::host {
namespace {

// A network ready to run on a number of workers.
class Session {
 public:
  Session(const HostModel& model, int32_t workers, const ImageBatches& batches)
      : network_(model.network()),
        plan_(model.plan()),
        batches_(batches),
        memory_(measured_memory([this](Arena& arena) { batches_.take(arena); }, workers)) {}

  ImageBatches::Memory memory(int32_t worker) const {
    Arena arena = memory_.arena(worker);
    return batches_.take(arena);
  }

  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }
  const ImageBatches& batches() const { return batches_; }

 private:
  const Network& network_;
  const Plan& plan_;
  const ImageBatches batches_;
  AlignedMemory memory_;
};

struct Batch {
  const Session* session;
  const int8_t* images;
  int32_t count;
};

// Images first .. first + count - 1, run up to before an op.
struct Tile {
  Activations memory;
  int32_t first, count;
};

Tile run_tile(const Batch& batch, int32_t index, int32_t worker, int32_t end) {
  const ImageBatches& batches = batch.session->batches();
  const ImageBatches::Memory memory = batch.session->memory(worker);
  const int32_t first = index * batches.images();
  const int64_t elements = element_count(batch.session->network().model->input());
  const Tile tile = {memory.many, first, std::min(batches.images(), batch.count - first)};
  batches.run(memory, batch.images + first * elements, tile.count, end);
  return tile;
}

struct LogitsJob {
  Batch batch;
  bool int8_logits;
  float* logits;
};

void logits_of_tile(void* argument, int32_t index, int32_t worker) {
  const LogitsJob& job = *static_cast<LogitsJob*>(argument);
  const Network& network = job.batch.session->network();
  const Tile tile = run_tile(job.batch, index, worker, network.model->op_count() - 1);
  main_logits(network, job.batch.session->plan(), tile.memory, tile.count, job.int8_logits);
  const int32_t classes = network.model->classes();
  std::copy_n(tile.memory.logits, tile.count * classes, job.logits + static_cast<int64_t>(tile.first) * classes);
}

struct InputsJob {
  Batch batch;
  int32_t op;
  int8_t* inputs;
};

void inputs_of_tile(void* argument, int32_t index, int32_t worker) {
  const InputsJob& job = *static_cast<InputsJob*>(argument);
  const Model& model = *job.batch.session->network().model;
  const Plan& plan = job.batch.session->plan();
  const Tile tile = run_tile(job.batch, index, worker, job.op);
  const uint32_t tensor = model.op(job.op).input[0];
  const int32_t elements = element_count(model.input_of(model.op(job.op)));
  const int8_t* from = tile.memory.tensor(plan, Pass::main, tensor, tile.count);
  for (int32_t i = 0; i < tile.count; ++i) {
    std::memcpy(job.inputs + static_cast<int64_t>(tile.first + i) * elements,
                from + i * plan.size(static_cast<int32_t>(tensor)), static_cast<size_t>(elements));
  }
}

// Runs a job's task over tiles of images, on several threads, each up to before an op.
template <typename Job>
void run_tiles(const HostModel& model, const int8_t* images, int32_t count, int32_t end, int32_t threads,
               const std::function<bool()>& should_stop, Executor::Task task, Job job) {
  if (count == 0) return;
  const Access::Shared use(model.access());
  const ImageBatches batches(model.network(), model.plan(), count, thread_count(threads), end);
  const int32_t tiles = (count + batches.images() - 1) / batches.images();
  Team team(std::min(thread_count(threads), tiles), should_stop);
  const Session session(model, team.threads(), batches);
  job.batch = {&session, images, count};
  const Executor executor = team.executor();
  if (!executor.run(executor.context, tiles, task, &job, true)) check({Code::cancelled});
}

}  // namespace

void batch_logits(const HostModel& model, const int8_t* images, int32_t count, bool int8_logits, int32_t threads,
                  const std::function<bool()>& should_stop, float* logits) {
  run_tiles(model, images, count, model.model().op_count() - 1, threads, should_stop, logits_of_tile,
            LogitsJob{{}, int8_logits, logits});
}

void batch_inputs(const HostModel& model, const int8_t* images, int32_t count, int32_t op, int32_t threads,
                  const std::function<bool()>& should_stop, int8_t* inputs) {
  run_tiles(model, images, count, op, threads, should_stop, inputs_of_tile, InputsJob{{}, op, inputs});
}

std::vector<std::vector<int8_t>> activations(const HostModel& host, const int8_t* image) {
  const Access::Shared use(host.access());
  const Model& model = host.model();
  const Session session(host, 1, ImageBatches(host.network(), host.plan(), 1, 1, 0));
  const Activations memory = session.memory(0).many;
  const Plan& plan = session.plan();
  std::vector<std::vector<int8_t>> tensors(static_cast<size_t>(model.tensor_count()));
  const auto keep = [&](uint32_t tensor) {
    const int8_t* data = memory.tensor(plan, Pass::main, tensor);
    tensors[tensor].assign(data, data + element_count(model.tensor(static_cast<int32_t>(tensor))));
  };
  const uint32_t input = model.header().input_tensor;
  std::memcpy(memory.tensor(plan, Pass::main, input), image, static_cast<size_t>(element_count(model.input())));
  keep(input);
  for (int32_t i = 0; i < model.op_count(); ++i) {
    forward(session.network(), plan, memory, 1, i, i + 1);
    keep(model.op(i).output);
  }
  return tensors;
}

}  // namespace pmt::host
