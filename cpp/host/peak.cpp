#include <algorithm>
#include <chrono>

#include "host/kernels/kernel_choice.hpp"
#include "host/profile.hpp"
#include "host/team.hpp"

namespace pmt::host {
namespace {

// A loop and its multiply-accumulates a turn. The loops are assembly because a compiler would move
// work out of a loop that computes the same thing in every turn. Twelve independent sums hide the
// latency; what the registers hold does not matter.
struct Loop {
  const char* instruction;
  int32_t macs;
  void (*run)(int64_t turns);
};

#if defined(__x86_64__)

#define PMT_SIX(line) line("0") line("1") line("2") line("3") line("4") line("5")
#define PMT_TWELVE(line) PMT_SIX(line) line("6") line("7") line("8") line("9") line("10") line("11")
#define PMT_REGISTERS                                                                                                 \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"

// Products and sums in groups: one after the other they get in each other's way on some CPUs.
#define PMT_PRODUCT(i) "vpmaddwd %%ymm8, %%ymm9, %%ymm1" i "\n\t"
#define PMT_SUM(i) "vpaddd %%ymm1" i ", %%ymm" i ", %%ymm" i "\n\t"
void run_avx2(int64_t turns) {
  for (int64_t i = 0; i < turns; ++i) {
    asm volatile(PMT_SIX(PMT_PRODUCT) PMT_SIX(PMT_SUM)::: PMT_REGISTERS);
  }
  asm volatile("vzeroupper" ::: PMT_REGISTERS);
}

#define PMT_VEX_DOT(i) "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" i "\n\t"
void run_avx_vnni(int64_t turns) {
  for (int64_t i = 0; i < turns; ++i) asm volatile(PMT_TWELVE(PMT_VEX_DOT)::: PMT_REGISTERS);
  asm volatile("vzeroupper" ::: PMT_REGISTERS);
}

#define PMT_EVEX_DOT(i) "vpdpbusd %%zmm14, %%zmm15, %%zmm" i "\n\t"
void run_avx512_vnni(int64_t turns) {
  for (int64_t i = 0; i < turns; ++i) asm volatile(PMT_TWELVE(PMT_EVEX_DOT)::: PMT_REGISTERS);
  asm volatile("vzeroupper" ::: PMT_REGISTERS);
}

#define PMT_SSE_PRODUCT(i) "movdqa %%xmm14, %%xmm1" i "\n\tpmaddwd %%xmm15, %%xmm1" i "\n\t"
#define PMT_SSE_SUM(i) "paddd %%xmm1" i ", %%xmm" i "\n\t"
void run_sse2(int64_t turns) {
  for (int64_t i = 0; i < turns; ++i) {
    asm volatile(PMT_SSE_PRODUCT("0") PMT_SSE_PRODUCT("1") PMT_SSE_PRODUCT("2") PMT_SSE_PRODUCT("3") PMT_SSE_SUM("0")
                     PMT_SSE_SUM("1") PMT_SSE_SUM("2") PMT_SSE_SUM("3")::
                         : PMT_REGISTERS);
  }
}

Loop best_loop() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni")) return {"vpdpbusd zmm", 12 * 64, run_avx512_vnni};
  if (has_avx_vnni()) return {"vpdpbusd ymm", 12 * 32, run_avx_vnni};
  if (__builtin_cpu_supports("avx2")) return {"vpmaddwd ymm", 6 * 16, run_avx2};
  return {"pmaddwd xmm", 4 * 8, run_sse2};
}

#elif defined(__aarch64__)

#define PMT_NEON_REGISTERS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v30", "v31"
#define PMT_EACH(line)                                                                                             \
  line("0") line("1") line("2") line("3") line("4") line("5") line("6") line("7") line("16") line("17") line("18") \
      line("19")

#define PMT_SDOT(i) "sdot v" i ".4s, v30.16b, v31.16b\n\t"
void run_dot(int64_t turns) {
  for (int64_t i = 0; i < turns; ++i) {
    asm volatile(".arch armv8.2-a+dotprod\n\t" PMT_EACH(PMT_SDOT)::: PMT_NEON_REGISTERS);
  }
}

#define PMT_SMLAL(i) "smlal v" i ".4s, v30.4h, v31.4h\n\t"
void run_neon(int64_t turns) {
  for (int64_t i = 0; i < turns; ++i) asm volatile(PMT_EACH(PMT_SMLAL)::: PMT_NEON_REGISTERS);
}

Loop best_loop() {
  if (has_neon_dot()) return {"sdot v.4s", 12 * 16, run_dot};
  return {"smlal v.4s", 12 * 4, run_neon};
}

#else

void run_plain(int64_t turns) {
  int32_t sums[12] = {}, a = 3, b = 5;
  for (int64_t i = 0; i < turns; ++i) {
    asm volatile("" : "+r"(a), "+r"(b));
    for (int32_t& sum : sums) sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(a * b));
  }
  asm volatile("" ::"m"(sums));
}

Loop best_loop() { return {"plain", 12, run_plain}; }

#endif

constexpr int64_t turns = 200'000;
constexpr int32_t runs = 200;

double fastest_seconds(const Loop& loop) {
  double fastest = 1e30;
  for (int32_t i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loop.run(turns);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return fastest;
}

}  // namespace

Peak measure_peak(int32_t threads) {
  const Loop loop = best_loop();
  // Every thread's own best, all running: one thread that the system held up does not spoil the sum.
  double runs_a_second = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(start_threads(threads)) reduction(+ : runs_a_second)
#else
  (void)threads;
#endif
  runs_a_second += 1 / fastest_seconds(loop);
  return {loop.instruction, static_cast<double>(loop.macs) * static_cast<double>(turns) * runs_a_second * 1e-9};
}

}  // namespace pmt::host
