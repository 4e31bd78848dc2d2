#include "host/kernels/kernel_choice.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include "host/kernels/tables.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace pmt::host {
namespace {

constexpr const char* variable = "PMT_ISA";
constexpr const char* known_names[] = {"avx512_vnni", "avx_vnni", "avx2", "neon_dot", "portable"};

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

#ifdef PMT_X86_KERNELS
bool has_avx512_vnni() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

}  // namespace

#ifdef __x86_64__
// CPUID leaf 7.1, EAX bit 4; __builtin_cpu_supports() has no name for it in every compiler.
bool has_avx_vnni() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}
#elif defined(__aarch64__)
bool has_neon_dot() {
#ifdef __linux__
  constexpr unsigned long asimd_dot_product = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & asimd_dot_product) != 0;
#else
  return true;  // every Apple processor of this architecture that a Mac has
#endif
}
#endif

std::string isa_problem(const std::string& wanted, const std::vector<std::string>& available) {
  const bool known = std::find(std::begin(known_names), std::end(known_names), wanted) != std::end(known_names);
  return std::string(variable) + " is '" + wanted + "', which " +
         (known ? "is not in this processor" : "names no kernels of pmt") + "; it must be one of " + listed(available);
}

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> available;
#ifdef PMT_X86_KERNELS
  if (has_avx512_vnni()) available.push_back(&avx512_vnni_kernels());
#ifdef PMT_AVX_VNNI_KERNELS
  if (has_avx_vnni()) available.push_back(&avx_vnni_kernels());
#endif
  if (__builtin_cpu_supports("avx2")) available.push_back(&avx2_kernels());
#endif
#ifdef PMT_NEON_KERNELS
  if (has_neon_dot()) available.push_back(&neon_dot_kernels());
#endif
  available.push_back(&portable_kernels());
  return available;
}

const Kernels& host_kernels() {
  const std::vector<const Kernels*> available = available_kernels();
  const char* wanted = std::getenv(variable);
  if (wanted == nullptr || *wanted == '\0') return *available.front();
  for (const Kernels* kernels : available) {
    if (std::string(wanted) == kernels->name) return *kernels;
  }
  std::vector<std::string> names;
  names.reserve(available.size());
  for (const Kernels* kernels : available) names.emplace_back(kernels->name);
  throw std::invalid_argument(isa_problem(wanted, names));
}

}  // namespace pmt::host
