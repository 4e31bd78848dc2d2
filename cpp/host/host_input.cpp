#include "host/host_input.hpp"

#include <algorithm>
#include <cstring>

#include "core/input/input_stage.hpp"
#include "host/team.hpp"

namespace pmt::host {
namespace {

constexpr int32_t frames_at_once = 8;

struct Frames {
  const Model* model;
  const AlignedMemory* memory;
  const uint8_t* frames;
  int32_t count;
  int8_t* inputs;
};

void run_frames(void* argument, int32_t index, int32_t worker) {
  const Frames& job = *static_cast<Frames*>(argument);
  const auto bytes = static_cast<size_t>(frame_bytes(*job.model));
  const auto elements = static_cast<size_t>(element_count(job.model->input()));
  uint8_t* const scratch = job.memory->data(worker);
  uint8_t* const copy = scratch + input_stage_bytes(*job.model);
  const int32_t end = std::min((index + 1) * frames_at_once, job.count);
  for (int32_t i = index * frames_at_once; i < end; ++i) {
    std::memcpy(copy, job.frames + static_cast<size_t>(i) * bytes, bytes);
    run_input_stage(*job.model, copy, scratch, job.inputs + static_cast<size_t>(i) * elements);
  }
}

}  // namespace

void batch_input_stage(const HostModel& model, const uint8_t* frames, int32_t count, int32_t threads,
                       const std::function<bool()>& should_stop, int8_t* inputs) {
  const Access::Shared use(model.access());
  const Model& view = model.model();
  const int32_t tasks = (count + frames_at_once - 1) / frames_at_once;
  Team team(std::clamp(thread_count(threads), 1, std::max(tasks, 1)), should_stop);
  const AlignedMemory memory(static_cast<size_t>(input_stage_bytes(view) + frame_bytes(view)), team.threads());
  Frames job = {&view, &memory, frames, count, inputs};
  const Executor executor = team.executor();
  if (!executor.run(executor.context, tasks, run_frames, &job, true)) check({Code::cancelled});
}

}  // namespace pmt::host
