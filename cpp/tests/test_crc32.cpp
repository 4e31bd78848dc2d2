#include <doctest/doctest.h>

#include "core/base/crc32.hpp"

using namespace pmt;

TEST_CASE("crc32 is zlib's") {
  const auto* digits = reinterpret_cast<const uint8_t*>("123456789");
  CHECK(crc32(digits, 9) == 0xCBF43926u);
  CHECK(crc32(digits, 0) == 0u);
  CHECK(crc32(digits + 4, 5, crc32(digits, 4)) == 0xCBF43926u);
}
