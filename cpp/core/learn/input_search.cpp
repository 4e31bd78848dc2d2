#include "core/learn/input_search.hpp"

#include "core/base/arithmetic.hpp"
#include "core/image/model_checks.hpp"
#include "core/learn/state_choice.hpp"

namespace pmt {
namespace {

constexpr int32_t chain_errors = 2;                      // standard errors by which two filters must be better than one
constexpr int32_t own_errors = 2;                        // by which filters must be better than the model's own
constexpr int32_t factors[] = {7, 14}, factor_one = 10;  // of a strength, in a search
constexpr int32_t factor_count = sizeof factors / sizeof *factors;
constexpr int32_t most_steps = 4;  // by each of them

FilterChain chain_of(const FilterRecord& filter) {
  FilterChain chain = {};
  chain.records[0] = filter;
  chain.count = 1;
  return chain;
}

// Another strength inside the range, at least a step away where it grows; half to even.
FilterRecord scaled(const FilterRecord& filter, int32_t factor) {
  const int32_t size = filter.strength < 0 ? -filter.strength : filter.strength, product = size * factor;
  const int32_t whole = product / factor_one, rest = product % factor_one;
  int32_t rounded = whole + (2 * rest > factor_one || (2 * rest == factor_one && whole % 2 != 0) ? 1 : 0);
  if (factor > factor_one) rounded = larger(rounded, size + 1);
  const StrengthRange range = strength_range(filter.kind);
  FilterRecord other = filter;
  other.strength = clamp(filter.strength < 0 ? -rounded : rounded, range.low, range.high);
  return other.strength == 0 ? filter : other;
}

}  // namespace

void InputSearch::take(int32_t images, Arena& arena) {
  of_own_.list = arena.take<int32_t>(images);
  of_best_.list = arena.take<int32_t>(images);
}

void InputSearch::start(const Model& model, int32_t images) {
  own_ = best_ = candidate_ = model.filters();
  all_ = images;
  of_own_.found.images = of_best_.found.images = 0;
  in_bank_ = hopeful_ = 0;
  for (int32_t i = 0; i < input_bank_size; ++i) {
    const bool fits = filter_is_valid(*model.stage(), input_bank[i]) && !(chain_of(input_bank[i]) == own_);
    if (fits) order_[in_bank_++] = i;
  }
  at_ = -1;  // the model's own filters
  is_chain_ = false;
  part_ = Part::over;
  if (images >= fewest_images) ask(Part::bank, own_, most(bank_images));
}

void InputSearch::ask(Part part, const FilterChain& chain, int32_t images) {
  part_ = part;
  candidate_ = chain;
  images_ = images;
}

void InputSearch::keep(Measured& measured, const Reported& found) {
  __builtin_memcpy(measured.list, found.disagreements, sizeof(int32_t) * static_cast<size_t>(found.images));
  measured.found = {found.sum, found.entropy, found.images, measured.list};
}

void InputSearch::keep_best(const Reported& found) {
  best_ = candidate_;
  keep(of_best_, found);
}

void InputSearch::report(const int32_t* disagreements, int64_t entropy) {
  Reported found = {0, entropy, images_, disagreements};
  for (int32_t i = 0; i < images_; ++i) found.sum += disagreements[i];
  const bool is_less = of_best_.found.images != images_ || found.sum < of_best_.found.sum;
  switch (part_) {
    case Part::bank:
      if (at_ < 0) {
        keep(of_own_, found);
      } else {
        sums_[at_] = found.sum;
        if (is_less) keep_best(found);
      }
      return next_of_bank();
    case Part::finalists:
      if (is_less) keep_best(found);
      return next_finalist();
    case Part::strength:
      if (is_less) {
        keep_best(found);
        ++steps_;
      } else {
        steps_ = most_steps;
      }
      return next_strength();
    case Part::chain:
      if (!is_worse(of_best_.found.disagreements, disagreements, images_, chain_errors)) return next_chain();
      keep_best(found);
      is_chain_ = true;
      return start_strength();
    case Part::own: keep(of_own_, found); return next_of_all();
    case Part::best: keep_best(found); return next_of_all();
    case Part::over: return;
  }
}

void InputSearch::next_of_bank() {
  if (++at_ < in_bank_) return ask(Part::bank, chain_of(input_bank[order_[at_]]), images_);
  sort_bank();
  at_ = -1;
  if (most(best_images) == images_) return start_strength();
  next_finalist();
}

// By insertion, so that equal ones stay in the bank's order.
void InputSearch::sort_bank() {
  for (int32_t i = 1; i < in_bank_; ++i) {
    for (int32_t j = i; j > 0 && sums_[j] < sums_[j - 1]; --j) {
      const int64_t sum = sums_[j];
      const int32_t place = order_[j];
      sums_[j] = sums_[j - 1];
      order_[j] = order_[j - 1];
      sums_[j - 1] = sum;
      order_[j - 1] = place;
    }
  }
  while (hopeful_ < in_bank_ && sums_[hopeful_] < of_own_.found.sum) ++hopeful_;
}

void InputSearch::next_finalist() {
  if (++at_ < smaller(kept, in_bank_)) {
    return ask(Part::finalists, chain_of(input_bank[order_[at_]]), most(best_images));
  }
  start_strength();
}

void InputSearch::start_strength() {
  factor_ = steps_ = 0;
  next_strength();
}

void InputSearch::next_strength() {
  for (; factor_ < factor_count; ++factor_, steps_ = 0) {
    if (steps_ == most_steps) continue;
    FilterChain next = best_;
    FilterRecord& last = next.records[next.count - 1];
    last = scaled(last, factors[factor_]);
    if (!(next == best_)) return ask(Part::strength, next, most(best_images));
  }
  end_strength();
}

void InputSearch::end_strength() {
  at_ = -1;
  if (is_chain_) return next_of_all();
  next_chain();
}

void InputSearch::next_chain() {
  while (++at_ < hopeful_) {
    const FilterRecord& other = input_bank[order_[at_]];
    if (other.kind == best_.records[0].kind) continue;
    FilterChain chain = best_;
    chain.records[chain.count++] = other;
    return ask(Part::chain, chain, most(best_images));
  }
  next_of_all();
}

void InputSearch::next_of_all() {
  if (of_own_.found.images != all_) return ask(Part::own, own_, all_);
  if (of_best_.found.images != all_) return ask(Part::best, best_, all_);
  decide();
}

// Less entropy, too: a blur makes views alike, but not predictions sure.
void InputSearch::decide() {
  part_ = Part::over;
  const bool better = is_worse(of_own_.found.disagreements, of_best_.found.disagreements, all_, own_errors) &&
                      of_best_.found.entropy < of_own_.found.entropy;
  if (!better) best_ = own_;
}

}  // namespace pmt
