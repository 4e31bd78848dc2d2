#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

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
  const ForcedIsa unknown("mmx");
  std::string message;
  try {
    host_kernels();
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  CHECK(message.find("PMT_ISA is 'mmx'; it must be one of avx512_vnni, avx_vnni, avx2, neon_dot, portable") == 0);
  CHECK(message.find("this machine supports") != std::string::npos);
}
