#include "host/device_memory.hpp"

#include <algorithm>
#include <utility>

#include "core/train/device_setup.hpp"

namespace pmt::host {
namespace {

// Bytes of a pass at each of its ops.
class AliveBytes {
 public:
  explicit AliveBytes(int32_t ops) : steps_(static_cast<size_t>(ops) + 2) {}

  void add(int32_t first, int32_t last, int32_t bytes) {
    if (begin_ < 0 || first < begin_) begin_ = first;
    end_ = std::max(end_, last);
    steps_[static_cast<size_t>(first)] += bytes;
    steps_[static_cast<size_t>(last) + 1] -= bytes;
  }

  // Whether more than `most` is alive at an op, beside what is `kept` throughout; tells the first with the most.
  bool exceeds(int64_t kept, int64_t* most, int32_t* op) const {
    bool found = false;
    int64_t bytes = kept;
    for (int32_t i = std::max(begin_, 0); i < end_; ++i) {
      bytes += steps_[static_cast<size_t>(i)];
      if (bytes <= *most) continue;
      *most = bytes;
      *op = i;
      found = true;
    }
    return found;
  }

 private:
  std::vector<int64_t> steps_;
  int32_t begin_ = -1, end_ = 0;
};

void add_tensor(AliveBytes& alive, const Plan& plan, int32_t tensor) {
  int32_t first = 0, last = 0;
  plan.lifetime(tensor, &first, &last);
  alive.add(first, last, plan.size(tensor));
}

void add_scratch(AliveBytes& alive, const Plan& plan, int32_t begin, int32_t ops) {
  for (int32_t op = begin; op < ops; ++op) {
    const bool there = plan.segment_begin(op) == op && plan.scratch_size(op) > 0;
    if (there) alive.add(op, plan.segment_end(op), plan.scratch_size(op));
  }
}

}  // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
                           int32_t batch, const Kernels& kernels, std::optional<std::vector<StreamedOps>> streams)
    : model_(std::move(model)),
      options_(options),
      layers_(std::move(layers)),
      storage_(layers_.size()),
      streams_(std::move(streams)) {
  const Access::Shared use(model_->access());
  const TrainerSetup all = setup(batch, kernels);
  tables_ = AlignedMemory(Trainer::table_bytes(this->model(), all.layer_count));
  open_tables(trainer_, all, tables_);
  plan_ = trainer_.plan();
}

TrainerSetup DeviceMemory::setup(int32_t batch, const Kernels& kernels) const {
  static constexpr StreamedOps none = {};
  TrainerSetup setup = {&model(),
                        &kernels,
                        &options_,
                        layers_.data(),
                        static_cast<int32_t>(layers_.size()),
                        storage_.data(),
                        batch,
                        sequential_executor()};
  setup.compact = true;
  if (streams_.has_value()) {
    setup.streams = streams_->empty() ? &none : streams_->data();
    setup.stream_count = static_cast<int32_t>(streams_->size());
  }
  return setup;
}

std::vector<StreamedOps> streams_of(const Plan& plan, const Model& model) {
  std::vector<StreamedOps> streams;
  for (int32_t op = 0; op < model.op_count(); op = plan.segment_end(op) + 1) {
    if (plan.streams(op)) streams.push_back({op, plan.segment_end(op), plan.band(op)});
  }
  return streams;
}

MemoryCount DeviceMemory::parts() const {
  Arena measure;
  take_lists(measure, trainer_.layer_count(), static_cast<int32_t>(segments().size()));
  for (const int32_t op : layers_) take_parameters(measure, model(), model().op(op), options_.train_weights != 0);
  MemoryCount parts = trainer_.memory_count();
  parts.add(measure);
  return parts;
}

PlanMoment DeviceMemory::peak(const std::vector<int32_t>& layers) {
  const int32_t tensors = model().tensor_count(), ops = model().op_count();
  PlanMoment moment = {-1, 0};
  int64_t most = -1;
  AliveBytes main(ops);
  for (int32_t t = 0; t < tensors; ++t) add_tensor(main, plan_, t);
  add_scratch(main, plan_, 0, ops);
  main.exceeds(0, &most, &moment.op);
  for (const int32_t layer : layers) {
    place_queries(layer);
    AliveBytes queries(ops);
    int64_t kept = 0;
    for (int32_t t = 0; t < tensors; ++t) {
      if (plan_.kept(t, layer)) kept += plan_.size(t);
      if (plan_.offset(Pass::query, t) >= 0) add_tensor(queries, plan_, t);
    }
    const int32_t start = plan_.query_start(layer);
    add_scratch(queries, plan_, start, ops);
    if (plan_.tile_offset() >= 0) queries.add(start, plan_.segment_end(layer), plan_.tile_size());
    if (queries.exceeds(kept, &most, &moment.op)) moment.layer = layer;
  }
  return moment;
}

}  // namespace pmt::host
