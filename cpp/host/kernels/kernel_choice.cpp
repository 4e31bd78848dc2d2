#include "host/kernels/kernel_choice.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "host/kernels/tables.hpp"

namespace pmt::host {
namespace {

constexpr const char* variable = "PMT_ISA";
constexpr const char* known_names[] = {"avx512_vnni", "avx_vnni", "avx2", "neon_dot", "portable"};

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

[[noreturn]] void refuse(const std::string& wanted, const std::vector<const Kernels*>& available) {
  std::vector<std::string> names;
  for (const Kernels* kernels : available) names.emplace_back(kernels->name);
  const std::vector<std::string> choices(std::begin(known_names), std::end(known_names));
  throw std::invalid_argument(std::string(variable) + " is '" + wanted + "'; it must be one of " + listed(choices) +
                              ", and this machine supports " + listed(names));
}

}  // namespace

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> available;
#ifdef PMT_X86_KERNELS
  if (__builtin_cpu_supports("avx2")) available.push_back(&avx2_kernels());
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
  refuse(wanted, available);
}

}  // namespace pmt::host
