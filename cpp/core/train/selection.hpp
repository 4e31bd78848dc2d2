// Which layers to train, found by training each set of them for a few steps from the same start
// (section 3.3 of the paper). Candidates run one after another in one arena; all see the same
// samples, and their scores are integers, so that a device chooses as the host does.
#pragma once

#include "core/train/trainer.hpp"

namespace pmt {

// A set of layers: op indices, ascending, and where each layer's parameters are trained.
struct Candidate {
  const int32_t* layers;
  const LayerStorage* storage;
  int32_t layer_count;
};

// Where the start values of one layer's parameters wait while it is trained. The store's own errors
// end the selection. `save` comes before a candidate's training, `restore` after it, whatever
// became of it. A device whose image is in flash can share one RAM among all candidates: there `save`
// fills the storage from the image, and `restore` has nothing to do.
struct ParameterStore {
  void* context;
  Status (*save)(void* context, const Layer& layer);
  Status (*restore)(void* context, const Layer& layer);
};

// The steps that the trial takes: called before each step, for the samples that `source` then reads, and
// the learning rate. The same step of every candidate must give the same samples.
struct TrialSteps {
  void* context;
  Status (*begin)(void* context, uint32_t step, float* learning_rate);
  SampleSource source;
  int32_t samples;  // in each step
  int32_t count;    // steps; with 0 the scores are those of the start
};

struct SelectionSetup {
  TrainerSetup trainer;  // layers, layer_count and storage are the candidates'
  ParameterStore store;
  TrialSteps steps;
  SampleSource held_out;
  int32_t held_out_count;
};

struct CandidateScore {
  int64_t loss_sum;  // over the held-out samples; fixed-point, see loss_units.hpp
  int32_t correct;
};

// Trains one candidate, scores it, and restores its parameters. `memory` is as for Trainer::open().
Status try_candidate(const SelectionSetup& setup, const Candidate& candidate, void* memory, size_t bytes,
                     CandidateScore* score);

// Tries all candidates; `scores` has one entry for each.
Status select_layers(const SelectionSetup& setup, const Candidate* candidates, int32_t count, void* memory,
                     size_t bytes, CandidateScore* scores);

}  // namespace pmt
