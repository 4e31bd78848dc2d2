// The session's checkpoints: what is in them, when they are written, and how training goes on.
#include "common/session.hpp"
#include "common/trained_image.hpp"
#include "common/training_log.hpp"

namespace pmt::firmware {

CheckpointParts Session::checkpoint_parts() const { return {this, 2 * trainer_.layer_count() + 1, checkpoint_part}; }

// Weights and biases of each layer, then the optimizer state.
CheckpointPart Session::checkpoint_part(const void* context, int32_t index) {
  const Session& self = *static_cast<const Session*>(context);
  if (index == 2 * self.trainer_.layer_count()) {
    const OptimizerState state = self.trainer_.optimizer_state();
    return {reinterpret_cast<uint8_t*>(state.values), static_cast<size_t>(state.count) * sizeof(float)};
  }
  const Layer& layer = self.trainer_.layer(index / 2);
  if (index % 2 == 1) {
    return {reinterpret_cast<uint8_t*>(layer.bias), static_cast<size_t>(layer.channels) * sizeof(int32_t)};
  }
  const bool trained = self.options_.train_weights != 0;  // else they are in flash
  return {reinterpret_cast<uint8_t*>(layer.weights), trained ? static_cast<size_t>(layer.weight_count) : 0};
}

bool Session::resume() {
  const CardHeader& h = card_.header();
  slots_.open(&storage_, h.first_slot, h.slot_blocks, h.model_crc32);
  // A step begins with activations of its own.
  slots_.use(trainer_.workspace(0).activations, static_cast<size_t>(trainer_.plan().bytes()));
  if (checkpoint_bytes(checkpoint_parts()) > slots_.capacity())
    return fail("card", "a checkpoint does not fit its slot");
  if (!slots_.find()) return fail("card", slots_.problem());
  const SlotHeader& newest = slots_.newest();
  if (newest.sequence != 0) {
    if (newest.steps > static_cast<uint32_t>(h.steps)) return fail("card", "the checkpoint is of a later step");
    if (!slots_.load(checkpoint_parts())) return fail("card", slots_.problem());
    const Status status = trainer_.optimizer_state().check();
    if (!status.ok()) return fail("memories", status);
  }
  next_ = static_cast<int32_t>(newest.steps);
  verify_.resume(next_);
  log_resume(h, newest);
  return true;
}

bool Session::save() {
  const uint32_t started = board::milliseconds();
  const TrainedImage trained = {&model_, image_.bytes, &trainer_.layer(0), trainer_.layer_count()};
  const uint32_t crc = trained_crc32(trained);
  if (!slots_.save(checkpoint_parts(), static_cast<uint32_t>(next_), crc)) return fail("checkpoint", slots_.problem());
  log_checkpoint(slots_.newest(), board::milliseconds() - started);
  if (finished()) verify_.checkpoint(crc);
  return true;
}

}  // namespace pmt::firmware
