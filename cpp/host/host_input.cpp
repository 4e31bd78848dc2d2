#include "host/host_input.hpp"

#include <algorithm>
#include <cstring>

#include "core/input/input_stage.hpp"
#include "host/team.hpp"

namespace pmt::host {
namespace {

constexpr int32_t frames_at_once = 8;

}  // namespace

void batch_input_stage(const HostModel& model, const uint8_t* frames, int32_t count, int32_t threads,
                       const std::function<bool()>& should_stop, int8_t* inputs) {
  const Access::Shared use(model.access());
  const Model& view = model.model();
  const int32_t tasks = (count + frames_at_once - 1) / frames_at_once;
  Team team(std::clamp(thread_count(threads), 1, std::max(tasks, 1)), should_stop);
  const AlignedMemory memory(static_cast<size_t>(input_stage_bytes(view) + frame_bytes(view)), team.threads());
  const auto bytes = static_cast<size_t>(frame_bytes(view));
  const auto elements = static_cast<size_t>(element_count(view.input()));
  const auto run_frames = [&](int32_t task, int32_t worker) {
    uint8_t* const scratch = memory.data(worker);
    uint8_t* const copy = scratch + input_stage_bytes(view);
    const int32_t end = std::min((task + 1) * frames_at_once, count);
    for (int32_t i = task * frames_at_once; i < end; ++i) {
      std::memcpy(copy, frames + static_cast<size_t>(i) * bytes, bytes);
      run_input_stage(view, copy, scratch, inputs + static_cast<size_t>(i) * elements);
    }
  };
  if (!team.executor().for_each(tasks, true, run_frames)) check({Code::cancelled});
}

}  // namespace pmt::host
