// The memory that a device takes of its arena ahead of the trainer: lists for what its card says, and the
// parameters of the layers under training.
#pragma once

#include "core/base/arena.hpp"
#include "core/net/segments.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

struct DeviceLists {
  int32_t* layers;
  StreamedOps* streams;
  LayerStorage* storage;
};

inline LayerStorage* take_storage(Arena& arena, int32_t layers) {
  return arena.take<LayerStorage>(MemoryPart::lists, layers);
}

inline DeviceLists take_lists(Arena& arena, int32_t layers, int32_t streams) {
  DeviceLists lists = {};
  lists.layers = arena.take<int32_t>(MemoryPart::lists, layers);
  lists.streams = arena.take<StreamedOps>(MemoryPart::lists, streams);
  lists.storage = take_storage(arena, layers);
  return lists;
}

// Weights that are not trained are never written: they stay in the image.
inline LayerStorage take_parameters(Arena& arena, const Model& model, const OpRecord& op, bool train_weights) {
  LayerStorage storage = {};
  storage.weights = train_weights ? arena.take<int8_t>(MemoryPart::weights, weight_count(model, op))
                                  : const_cast<int8_t*>(model.weights(op));
  storage.bias = arena.take<int32_t>(MemoryPart::biases, model.output_of(op).channels);
  return storage;
}

// Fills the storage of an op with the model's parameters.
inline void copy_parameters(const Model& model, const OpRecord& op, const LayerStorage& to) {
  if (to.weights != model.weights(op)) {
    __builtin_memcpy(to.weights, model.weights(op), static_cast<size_t>(weight_count(model, op)));
  }
  __builtin_memcpy(to.bias, model.bias(op), sizeof(int32_t) * static_cast<size_t>(model.output_of(op).channels));
}

}  // namespace pmt
