#include <doctest/doctest.h>

#include "core/base/crc32.hpp"
#include "tests/random_bottlenecks.hpp"
#include "tests/random_dag.hpp"
#include "tests/random_network.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

uint32_t next_checksum(uint32_t before, const AlignedBytes& image) { return crc32(image.data(), image.size(), before); }

}  // namespace

TEST_CASE("a seed gives the same networks on every platform") {
  uint32_t bottlenecks = 0, networks = 0, dags = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    RandomSource first(seed), second(seed), third(seed);
    bottlenecks = next_checksum(bottlenecks, random_bottlenecks(first, 3, seed % 2 == 1));
    networks = next_checksum(networks, random_network(second, 4, static_cast<Head>(seed % 3)));
    dags = next_checksum(dags, random_dag(third, 6));
  }
  CHECK(bottlenecks == 0xEDAFA5CEu);
  CHECK(networks == 0xA71B588Cu);
  CHECK(dags == 0x2156D946u);
}
