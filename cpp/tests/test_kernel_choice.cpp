#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/kernels/kernel_choice.hpp"

using namespace pmt;
using namespace pmt::host;

namespace {

// Sets PMT_ISA while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(const char* name) {
    if (const char* before = std::getenv("PMT_ISA")) before_ = before;
    setenv("PMT_ISA", name, 1);
  }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;
  ~ForcedIsa() { setenv("PMT_ISA", before_.c_str(), 1); }

 private:
  std::string before_;
};

}  // namespace

TEST_CASE("the portable kernels are always available, and the last choice") {
  CHECK(available_kernels().back() == &portable_kernels());
}

TEST_CASE("the best available kernels are the host's, unless PMT_ISA names others") {
  {
    const ForcedIsa nothing("");
    CHECK(&host_kernels() == available_kernels().front());
  }
  for (const Kernels* kernels : available_kernels()) {
    const ForcedIsa forced(kernels->name);
    CHECK(&host_kernels() == kernels);
  }
}

TEST_CASE("PMT_ISA that cannot be met is an error that says what can") {
  const std::vector<std::string> available = {"avx512_vnni", "avx2", "portable"};
  CHECK(isa_problem("avx_vnni", available) ==
        "PMT_ISA is 'avx_vnni', which is not in this processor; it must be one of avx512_vnni, avx2, portable");
  CHECK(isa_problem("neon_dot", {"portable"}) ==
        "PMT_ISA is 'neon_dot', which is not in this processor; it must be one of portable");
  CHECK(isa_problem("mmx", available) ==
        "PMT_ISA is 'mmx', which names no kernels of pmt; it must be one of avx512_vnni, avx2, portable");
}

TEST_CASE("PMT_ISA is refused where its kernels cannot run") {
  std::vector<std::string> available;
  for (const Kernels* kernels : available_kernels()) available.emplace_back(kernels->name);
  int32_t refused = 0;
  for (const std::string name : {"avx512_vnni", "avx_vnni", "avx2", "neon_dot", "mmx"}) {
    if (std::find(available.begin(), available.end(), name) != available.end()) continue;
    const ForcedIsa forced(name.c_str());
    std::string message;
    try {
      host_kernels();
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    CHECK(message == isa_problem(name, available));
    ++refused;
  }
  CHECK(refused >= 2);  // no processor has both those of x86 and of Arm
}
