// A search for the filters before a network, by forward passes alone: what it asks for is tried on images without
// labels, and it is told how much the predictions of views disagree. The best of a bank on some images are compared on
// more (successive halving; Jamieson, Talwalkar 2016, arXiv:1502.07943), the best one's strength is searched (pattern
// search; Hooke, Jeeves 1961), and a second filter is tried after it. The model's own filters stay unless others are
// better beyond doubt, image by image.
#pragma once

#include "core/base/arena.hpp"
#include "core/image/model.hpp"

namespace pmt {

// Where a search begins, not its result.
constexpr FilterRecord input_bank[] = {
    {FilterKind::switching_median, 32, NoiseModel::constant, 0},
    {FilterKind::dct_shrinkage, 25, NoiseModel::constant, 0},
    {FilterKind::dct_shrinkage, 60, NoiseModel::constant, 0},
    {FilterKind::dct_shrinkage, 25, NoiseModel::square_root, 0},
    {FilterKind::dct_shrinkage, 60, NoiseModel::square_root, 0},
    {FilterKind::dct_shrinkage, 25, NoiseModel::proportional, 0},
    {FilterKind::dct_shrinkage, 60, NoiseModel::proportional, 0},
    {FilterKind::sharpening, 11, NoiseModel::constant, 0},
    {FilterKind::sharpening, 32, NoiseModel::constant, 0},
    {FilterKind::standardization, 55, NoiseModel::constant, 0},
    {FilterKind::tone_curve, -5, NoiseModel::constant, 0},
    {FilterKind::tone_curve, 5, NoiseModel::constant, 0},
};
constexpr int32_t input_bank_size = sizeof input_bank / sizeof *input_bank;

class InputSearch {
 public:
  static constexpr int32_t fewest_images = 30;  // fewer decide by chance
  static constexpr int32_t bank_images = 100;   // that the whole bank is tried on
  static constexpr int32_t best_images = 300;   // that the best are tried on; the last decision is on all
  static constexpr int32_t kept = 4;            // of the bank

  // Lists of at most `images` images.
  void take(int32_t images, Arena& arena);
  // A search on `images` images; the model has the stage's own filters. It is over at once where there are too few.
  void start(const Model& model, int32_t images);

  bool is_over() const { return part_ == Part::over; }
  // To be tried next, on images() images, spread over all.
  const FilterChain& candidate() const { return candidate_; }
  int32_t images() const { return images_; }
  // Image by image, and their sum of two equal views.
  void report(const int32_t* disagreements, int64_t entropy);

  // The best filters so far, and after the end those that are chosen.
  const FilterChain& best() const { return best_; }

 private:
  enum class Part : int32_t { bank, finalists, strength, chain, own, best, over };
  struct Reported {
    int64_t sum, entropy;
    int32_t images;
    const int32_t* disagreements;  // image by image
  };
  struct Measured {
    Reported found;
    int32_t* list;  // that holds its disagreements
  };

  int32_t most(int32_t images) const { return all_ < images ? all_ : images; }
  static void keep(Measured& measured, const Reported& found);
  void keep_best(const Reported& found);
  void ask(Part part, const FilterChain& chain, int32_t images);
  void sort_bank();
  void next_of_bank();
  void next_finalist();
  void start_strength();
  void next_strength();
  void end_strength();
  void next_chain();
  void next_of_all();
  void decide();

  int32_t all_ = 0, images_ = 0;
  Part part_ = Part::over;
  FilterChain own_ = {}, best_ = {}, candidate_ = {};
  Measured of_own_ = {}, of_best_ = {};
  int64_t sums_[input_bank_size] = {};   // of the bank
  int32_t order_[input_bank_size] = {};  // of the bank, the best first
  int32_t in_bank_ = 0, hopeful_ = 0;    // how many of them there are, and are better than the model's own
  int32_t at_ = 0;                       // in the bank, or in its order
  int32_t factor_ = 0, steps_ = 0;       // of the search of a strength
  bool is_chain_ = false;
};

}  // namespace pmt
