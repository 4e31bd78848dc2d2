// On a Cortex-M7: the arm_dsp kernels' assembly against the portable kernels, on random layers.
#include <initializer_list>

#include "common/board.hpp"
#include "common/log.hpp"
#include "common/semihosting.hpp"
#include "core/base/arithmetic.hpp"
#include "core/kernels/signs.hpp"
#include "core/kernels/table.hpp"

namespace {

using namespace pmt;
using firmware::Line;

constexpr int32_t room = 40000;
constexpr int8_t filler = 0x5B;

alignas(16) int8_t input[room], other[room], weights[room], expected[room + 16], actual[room + 16];
alignas(16) uint8_t scratch[32768];
alignas(16) int32_t bias[512], expected_sums[512], actual_sums[512];
alignas(16) float scales[512], expected_logits[512], actual_logits[512];
int32_t cases = 0;

struct Random {
  uint32_t state;  // not 0, which main() sees to
  int32_t integer(int32_t low, int32_t high) {
    state = xorshift32(state);
    return low + static_cast<int32_t>((state >> 3) % static_cast<uint32_t>(high - low + 1));
  }
  bool chance(int32_t one_in) { return integer(1, one_in) == 1; }
  void fill(int8_t* bytes, int32_t count) {
    for (int32_t i = 0; i < count; ++i) bytes[i] = static_cast<int8_t>(integer(-128, 127));
  }
};
Random random_numbers = {};

bool same(const char* what, const void* a, const void* b, size_t bytes) {
  ++cases;
  if (__builtin_memcmp(a, b, bytes) == 0) return true;
  Line().text("error: ").text(what).text(" differs in case ").number(cases).print();
  return false;
}

int32_t outputs(int32_t size, int32_t padding, int32_t kernel, int32_t stride) {
  return (size + padding - kernel) / stride + 1;
}

void prepare(const LinearArgs& args, int32_t taps) {
  for (int32_t c = 0; c < args.out.channels; ++c) {
    const bool dead = random_numbers.chance(8);
    scales[c] = dead ? 3.9e-9f : static_cast<float>(random_numbers.integer(1, 40)) * 4e-4f / static_cast<float>(taps);
    bias[c] = dead ? (random_numbers.chance(2) ? INT32_MIN : INT32_MAX) : random_numbers.integer(-20000, 20000);
  }
  for (auto* bytes : {expected, actual}) __builtin_memset(bytes, filler, sizeof expected);
}

LinearArgs random_layer(OpKind kind, int32_t kernel_h, int32_t kernel_w, int32_t stride, int32_t channels) {
  Random& r = random_numbers;
  const int32_t top = r.integer(0, kernel_h - 1), left = r.integer(0, kernel_w - 1);
  const int32_t bottom = r.integer(0, kernel_h - 1), right = r.integer(0, kernel_w - 1);
  const Shape in = {r.integer(kernel_h, 14), r.integer(kernel_w, 20), channels};
  const bool depthwise = kind == OpKind::depthwise_conv2d;
  const Shape out = {outputs(in.height, top + bottom, kernel_h, stride),
                     outputs(in.width, left + right, kernel_w, stride), depthwise ? channels : r.integer(1, 24)};
  const bool clamped = r.chance(4);
  const int32_t taps = kernel_h * kernel_w * (depthwise ? 1 : channels);
  r.fill(input, in.height * in.width * in.channels);
  r.fill(weights, taps * out.channels);
  const LinearArgs args = {input,
                           nullptr,
                           {1, 0, 0},
                           in,
                           out,
                           {kernel_h, kernel_w, stride, stride, top, left},
                           r.integer(-128, 127),
                           r.integer(-128, 127),
                           clamped ? -100 : -128,
                           clamped ? 90 : 127,
                           0,
                           out.channels,
                           weights,
                           bias,
                           scales,
                           nullptr,
                           scratch};
  prepare(args, taps);
  return args;
}

bool compare(const char* what, LinearArgs args, void (*Kernels::*kernel)(const LinearArgs&)) {
  args.output = expected;
  (portable_kernels().*kernel)(args);
  args.output = actual;
  (arm_dsp_kernels().*kernel)(args);
  return same(what, expected, actual, sizeof expected);
}

bool compare_convolutions() {
  for (const int32_t kernel : {1, 1, 2, 3}) {
    for (int32_t channels = 1; channels <= 33; ++channels) {
      const LinearArgs args = random_layer(OpKind::conv2d, kernel, kernel, random_numbers.integer(1, 2), channels);
      if (!compare("conv2d", args, &Kernels::conv2d)) return false;
    }
  }
  return true;
}

bool compare_depthwise() {
  for (const int32_t kernel : {3, 5, 7}) {
    for (const int32_t stride : {1, 2}) {
      for (int32_t i = 0; i < 24; ++i) {
        const LinearArgs args =
            random_layer(OpKind::depthwise_conv2d, kernel, kernel, stride, random_numbers.integer(4, 9));
        if (!compare("depthwise_conv2d", args, &Kernels::depthwise_conv2d)) return false;
      }
    }
  }
  return true;
}

bool compare_dense() {
  for (int32_t channels = 1; channels <= 70; ++channels) {
    LinearArgs args = random_layer(OpKind::conv2d, 1, 1, 1, channels);
    args.in = {1, 1, channels};
    args.out = {1, 1, args.out.channels};
    if (!compare("fully_connected", args, &Kernels::fully_connected)) return false;
    if (!compare("conv2d of one position", args, &Kernels::conv2d)) return false;
    portable_kernels().logits(args, expected_logits);
    arm_dsp_kernels().logits(args, actual_logits);
    const size_t bytes = sizeof(float) * static_cast<size_t>(args.out.channels);
    if (!same("logits", expected_logits, actual_logits, bytes)) return false;
  }
  return true;
}

bool compare_adds() {
  for (int32_t count = 1; count <= 40; ++count) {
    random_numbers.fill(input, count);
    random_numbers.fill(other, count);
    const float scale = static_cast<float>(random_numbers.integer(1, 100)) / 64.0f;
    AddArgs args = {{input, other},
                    expected,
                    1,
                    count,
                    {0, 0},
                    0,
                    {random_numbers.integer(-128, 127), 3},
                    -7,
                    {0.5f, 0.25f},
                    scale,
                    count % 2 == 0 ? -128 : -90,
                    127};
    portable_kernels().add(args);
    args.output = actual;
    arm_dsp_kernels().add(args);
    if (!same("add", expected, actual, static_cast<size_t>(count))) return false;
  }
  return true;
}

bool compare_pools() {
  void (*Kernels::*const kernels[])(const PoolArgs&) = {&Kernels::average_pool, &Kernels::max_pool, &Kernels::mean};
  for (int32_t i = 0; i < 60; ++i) {
    const LinearArgs layer =
        random_layer(OpKind::depthwise_conv2d, random_numbers.integer(1, 3), 2, 2, random_numbers.integer(1, 21));
    for (const auto kernel : kernels) {
      PoolArgs args = {input, expected,   {1, 0, 0}, layer.in,        layer.out,      layer.window, layer.input_zero,
                       -3,    i % 2 == 0, 0.71f,     layer.clamp_min, layer.clamp_max};
      (portable_kernels().*kernel)(args);
      args.output = actual;
      (arm_dsp_kernels().*kernel)(args);
      if (!same("pooling", expected, actual, sizeof expected)) return false;
    }
  }
  return true;
}

bool compare_signs() {
  for (int32_t count = 1; count <= 200; ++count) {
    int8_t* signs = other;
    for (int32_t i = 0; i < count; ++i) signs[i] = static_cast<int8_t>(random_numbers.integer(-1, 1));
    random_numbers.fill(input, count);
    const int32_t mu = random_numbers.chance(2) ? 1 : random_numbers.integer(1, 100);
    for (const auto& bounds : {Shape{-128, 127, 0}, Shape{-127, 127, 0}, Shape{-20, 99, 0}}) {
      portable_kernels().perturb(input, signs, count, mu, bounds.height, bounds.width, expected);
      arm_dsp_kernels().perturb(input, signs, count, mu, bounds.height, bounds.width, actual);
      if (!same("perturb", expected, actual, static_cast<size_t>(count))) return false;
    }
    for (auto* sums : {expected_sums, actual_sums}) __builtin_memset(sums, 1, sizeof expected_sums);
    portable_kernels().accumulate_signs(signs, count, mu * 1000003, expected_sums);
    arm_dsp_kernels().accumulate_signs(signs, count, mu * 1000003, actual_sums);
    if (!same("accumulate_signs", expected_sums, actual_sums, sizeof expected_sums)) return false;
    const auto word = static_cast<uint32_t>(random_numbers.integer(INT32_MIN / 4, INT32_MAX / 4)) * 2654435761u;
    for (int32_t i = 0; i < 32; ++i) expected[i] = (word >> i & 1u) != 0 ? -1 : 1;
    store_signs(word, actual + count % 4);
    if (!same("store_signs", expected, actual + count % 4, 32)) return false;
  }
  return true;
}

}  // namespace

// The functions of a board that common/ needs: the console and the end, by semihosting.
void pmt::board::print(const char* text) { semihosting::print(text); }

void pmt::board::exit(int status) { semihosting::exit(status); }

int main() {
  random_numbers.state = 2463534242u;
  const bool equal = compare_convolutions() && compare_depthwise() && compare_dense() && compare_adds() &&
                     compare_pools() && compare_signs();
  if (equal) Line().text("equal in ").number(cases).text(" cases").print();
  return equal ? 0 : 1;
}
