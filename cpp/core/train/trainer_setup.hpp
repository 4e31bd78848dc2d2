// The task that a trainer is opened for.
#pragma once

#include "core/base/executor.hpp"
#include "core/net/network.hpp"
#include "core/net/segments.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

struct LossFunction;

struct TrainerSetup {
  const Model* model;
  const Kernels* kernels;
  const TrainerOptions* options;
  const int32_t* layers;  // op indices, ascending
  int32_t layer_count;
  const LayerStorage* storage;  // one per layer
  int32_t batch;                // largest number of samples in a step
  Executor executor;
  // Weights from pack_network(), kept up to date by the trainer; null for kernels that do not pack.
  PackedLayer* packed = nullptr;
  // Memory a worker has for queries at once, in bytes; 0: one query, in the gaps of the main pass.
  int32_t query_bytes = 0;
  // As little memory as the step can do with, for devices: one worker, one query at a time. The gradient
  // of a layer is summed up for a group of channels after another; with one sample where activations are no
  // longer needed, or not yet. estimate() and sums() are not there. Only with kernels that do not pack.
  bool compact = false;
  // Compact: bytes for sums that are there at least, if not whole layers are smaller; 0: 16 KB, or
  // 64 KB with batches over 1, whose sums have memory of their own.
  int32_t sum_bytes = 0;
  // Compact: the ops that stream, as the plan of a trainer opened without them has found; null: they are
  // searched for.
  const StreamedOps* streams = nullptr;
  int32_t stream_count = 0;
  // With Loss::function, which no step can do without, and with no other loss; it outlives the trainer.
  const LossFunction* loss_function = nullptr;
};

}  // namespace pmt
