#include "instructions/counting_kernels.hpp"

namespace pmt::instructions {
namespace {

constexpr uintptr_t counter_register = 0x40028018;  // FPGAIO COUNTER of Arm's MPS2+ (AN500)
constexpr int64_t tick_ns = 40;
constexpr int64_t instruction_ns = 256;

uint32_t ticks() { return *reinterpret_cast<volatile uint32_t*>(counter_register); }

}  // namespace

Counter::Counter() : last_(ticks()) {
  lap();
  const uint32_t before = last_;
  lap();
  empty_ = last_ - before;
  lap();
}

int64_t Counter::lap() {
  const uint32_t now = ticks();
  const uint32_t passed = now - last_;
  last_ = now;
  // Rounded, this is exact: an instruction is more than six ticks.
  const int64_t ticks_taken = static_cast<int64_t>(passed) - empty_;
  return (ticks_taken * tick_ns + instruction_ns / 2) / instruction_ns;
}

namespace {

struct State {
  const Kernels* inner;
  Kernels table;
  Counter counter;
  Counts counts;

  void add(Part part) {
    const auto index = static_cast<int32_t>(part);
    counts.instructions[index] += counter.lap();
    ++counts.calls[index];
  }
};

State& state() {
  static State only = {};
  return only;
}

// The kernel that a member of the table points to, between two readings of the counter.
template <auto member, Part part, typename... Arguments>
void count(Arguments... arguments) {
  State& s = state();
  s.add(Part::rest);
  (s.inner->*member)(arguments...);
  s.add(part);
}

}  // namespace

const Kernels& counted(const Kernels& kernels) {
  State& s = state();
  s.inner = &kernels;
  Kernels& t = s.table;
  t = kernels;
  t.conv2d = count<&Kernels::conv2d, Part::layers, const LinearArgs&>;
  t.depthwise_conv2d = count<&Kernels::depthwise_conv2d, Part::layers, const LinearArgs&>;
  t.fully_connected = count<&Kernels::fully_connected, Part::layers, const LinearArgs&>;
  t.logits = count<&Kernels::logits, Part::layers, const LinearArgs&, float*>;
  t.add = count<&Kernels::add, Part::other_ops, const AddArgs&>;
  t.average_pool = count<&Kernels::average_pool, Part::other_ops, const PoolArgs&>;
  t.max_pool = count<&Kernels::max_pool, Part::other_ops, const PoolArgs&>;
  t.mean = count<&Kernels::mean, Part::other_ops, const PoolArgs&>;
  t.philox_signs = count<&Kernels::philox_signs, Part::signs, const StreamId&, uint32_t, int32_t, int8_t*>;
  t.perturb = count<&Kernels::perturb, Part::perturbation, const int8_t*, const int8_t*, int32_t, int32_t, int32_t,
                    int32_t, int8_t*>;
  t.accumulate_signs = count<&Kernels::accumulate_signs, Part::accumulation, const int8_t*, int32_t, int32_t, int32_t*>;
  t.outer_product = count<&Kernels::outer_product, Part::outer_products, const OuterProductArgs&>;
  take_counts();
  return t;
}

Counts take_counts() {
  State& s = state();
  s.add(Part::rest);
  const Counts taken = s.counts;
  s.counts = {};
  return taken;
}

}  // namespace pmt::instructions
