#include "host/perturbed_forwards.hpp"

#include <algorithm>
#include <vector>

#include "core/base/arithmetic.hpp"
#include "core/net/forward.hpp"
#include "host/team.hpp"

namespace pmt::host {

namespace {

// A worker's memory for the activations of queries at once; as in training.
constexpr int32_t query_bytes = 1 << 17;

struct Memory : Activations {
  int8_t* weights;  // perturbed
  uint8_t* packed;  // the same, for kernels that pack
  int32_t* bias;    // perturbed, padded with zeros
};

class PerturbedForwards {
 public:
  PerturbedForwards(const HostModel& model, const LayerPerturbation& perturbation, const SampleArray& samples,
                    bool int8_logits, float* logits)
      : network_(model.network()),
        model_(model.model()),
        perturbation_(perturbation),
        op_(model_.op(perturbation.op)),
        samples_(samples),
        int8_logits_(int8_logits),
        all_logits_(logits),
        plan_table_(static_cast<size_t>(Plan::table_size(model_))) {
    plan_.make(model_, &perturbation_.op, 1, QueryMemory::apart, plan_table_.data());
    at_once_ = std::clamp(query_bytes / plan_.query_bytes(perturbation_.op), 1, perturbation_.queries);
  }

  void run(int32_t threads, const std::function<bool()>& should_stop) {
    Team team(threads, should_stop);
    const Executor executor = team.executor();
    executor_ = &executor;
    // Queries of a sample are split where samples alone would leave workers idle.
    const int32_t wanted = (4 * executor.workers + samples_.count - 1) / samples_.count;
    parts_ = executor.workers == 1 ? 1 : std::clamp(wanted, 1, perturbation_.queries);
    memory_ = measured_memory([this](Arena& arena) { take(arena); }, executor.workers);
    const auto task = [this](int32_t index, int32_t worker) { run_part(index / parts_, index % parts_, worker); };
    if (!executor.for_each(samples_.count * parts_, true, task)) check({Code::cancelled});
  }

 private:
  Memory take(Arena& arena) const {
    const auto alignment = static_cast<size_t>(network_.kernels->alignment);
    Memory memory = {take_activations(arena, network_, plan_, 1), nullptr, nullptr, nullptr};
    memory.queries = arena.take<uint8_t>(int64_t{plan_.query_bytes(perturbation_.op)} * at_once_, alignment);
    memory.logits = arena.take<float>(int64_t{model_.classes()} * at_once_);
    if (perturbation_.weights) {
      memory.weights = arena.take<int8_t>(weight_count(model_, op_), alignment);
      if (packs(*network_.kernels)) {
        memory.packed = arena.take<uint8_t>(network_.kernels->packed_bytes(op_shape(model_, op_)), alignment);
      }
    }
    if (perturbation_.bias) {
      memory.bias = arena.take<int32_t>(round_up(channels(), network_.kernels->channel_multiple), alignment);
    }
    return memory;
  }

  int32_t channels() const { return model_.output_of(op_).channels; }

  void run_part(int32_t sample, int32_t part, int32_t worker) const {
    Arena arena = memory_.arena(worker);
    const Memory memory = take(arena);
    const auto first = static_cast<int32_t>(int64_t{perturbation_.queries} * part / parts_);
    const auto end = static_cast<int32_t>(int64_t{perturbation_.queries} * (part + 1) / parts_);
    const int64_t elements = element_count(model_.input());
    std::copy_n(samples_.images + sample * elements, elements,
                memory.tensor(plan_, Pass::main, model_.header().input_tensor));
    forward(network_, plan_, memory, 1, 0, perturbation_.op + (perturbation_.nodes ? 1 : 0));
    for (int32_t query = first; query < end; query += at_once_) {
      if (executor_->stopping(executor_->context, worker)) return;
      run_queries(memory, sample, query, std::min(at_once_, end - query));
    }
  }

  void run_queries(const Memory& memory, int32_t sample, int32_t first, int32_t count) const {
    const int32_t last = model_.op_count() - 1;
    run_layer_of(memory, sample, first, images_of(memory, perturbation_.op, count));
    for (int32_t i = perturbation_.op + 1; i < last; ++i) {
      run_op(network_, i, images_of(memory, i, count), memory.scratch);
    }
    if (perturbation_.op < last) {
      head_logits(network_, memory, images_of(memory, last, count), int8_logits_, memory.scratch);
    }
    for (int32_t i = 0; i < count; ++i) {
      const int64_t row = int64_t{first + i} * samples_.count + sample;
      std::copy_n(memory.logits + i * model_.classes(), model_.classes(), all_logits_ + row * model_.classes());
    }
  }

  OpImages images_of(const Memory& memory, int32_t op, int32_t count) const {
    return query_images(model_, plan_, memory, perturbation_.op, count, op);
  }

  void run_layer_of(const Memory& memory, int32_t sample, int32_t first, const OpImages& images) const {
    const bool is_last = perturbation_.op == model_.op_count() - 1;
    const bool to_logits = is_last && !perturbation_.nodes && !int8_logits_ && has_linear_head(model_);
    for (int32_t i = 0; i < images.images; ++i) {
      OpImages image = images;
      image.images = 1;
      image.output += i * images.output_stride;
      if (perturbation_.nodes) {
        perturb_nodes(memory, perturbation_.nodes.of(first + i, sample), image.output);
      } else if (to_logits) {
        run_logits(network_, image, perturbed(memory, sample, first + i), 0, channels(), memory.scratch,
                   memory.logits + i * model_.classes());
      } else {
        run_layer(network_, perturbation_.op, image, perturbed(memory, sample, first + i), 0, channels(),
                  memory.scratch);
      }
    }
    if (is_last && !to_logits) dequantize_logits(model_, images, memory.logits);
  }

  LayerInput perturbed(const Memory& memory, int32_t sample, int32_t query) const {
    LayerInput input = layer_input(network_, perturbation_.op);
    const Parameters& own = network_.parameters[perturbation_.op];
    if (perturbation_.weights) {
      const int8_t* added = perturbation_.weights.of(query, sample);
      std::transform(own.weights, own.weights + weight_count(model_, op_), added, memory.weights,
                     [](int8_t w, int8_t p) { return static_cast<int8_t>(clamp(w + p, -127, 127)); });
      input.weights = memory.weights;
      if (packs(*network_.kernels)) {
        network_.kernels->pack(
            {op_shape(model_, op_), model_.input_of(op_).zero_point, memory.weights, nullptr, 0, memory.packed});
        input.packed = memory.packed;
      }
    }
    if (perturbation_.bias) {
      const int32_t* added = perturbation_.bias.of(query, sample);
      std::transform(own.bias, own.bias + channels(), added, memory.bias,
                     [](int32_t b, int32_t p) { return saturated(int64_t{b} + p); });
      input.bias = memory.bias;
    }
    return input;
  }

  void perturb_nodes(const Memory& memory, const int8_t* added, int8_t* output) const {
    const int8_t* clean = memory.tensor(plan_, Pass::main, op_.output);
    const int32_t count = element_count(model_.output_of(op_));
    const int32_t period = perturbation_.one_per_channel ? channels() : count;
    for (int32_t begin = 0; begin < count; begin += period) {
      std::transform(clean + begin, clean + begin + period, added, output + begin, [this](int8_t n, int8_t p) {
        return static_cast<int8_t>(clamp(n + p, op_.clamp_min, op_.clamp_max));
      });
    }
  }

  const Network& network_;
  const Model& model_;
  const LayerPerturbation perturbation_;
  const OpRecord& op_;
  const SampleArray samples_;
  const bool int8_logits_;
  float* const all_logits_;
  std::vector<int32_t> plan_table_;
  Plan plan_;
  int32_t at_once_ = 1, parts_ = 1;
  const Executor* executor_ = nullptr;
  AlignedMemory memory_;
};

}  // namespace

void perturbed_logits(const HostModel& model, const LayerPerturbation& perturbation, const SampleArray& samples,
                      bool int8_logits, int32_t threads, const std::function<bool()>& should_stop, float* logits) {
  if (samples.count == 0 || perturbation.queries == 0) return;
  const Access::Shared use(model.access());
  PerturbedForwards(model, perturbation, samples, int8_logits, logits).run(threads, should_stop);
}

void update_layer(const HostModel& host, const TrainerOptions& options, int32_t op, uint32_t step,
                  const UpdateInput& input, const GradientSums& sums, const LayerStorage& parameters) {
  const Access::Shared use(host.access());
  check(check_options(options));
  TrainerOptions by_weight = options;
  by_weight.rule = EstimatorRule::weight;
  const Layer layer = make_layer(host.model(), op, by_weight, parameters);
  const StepContext context = {&host.network(), &host.plan(), &options, &layer, 1, step};
  LayerUpdate update(context, layer, input);
  if (update.needs_all_sums()) update.accumulate(sums);
  update.apply(sums);
}

}  // namespace pmt::host
