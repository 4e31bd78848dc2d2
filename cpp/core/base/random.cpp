#include "core/base/random.hpp"

namespace pmt {

Random128 philox4x32(const uint32_t counter[4], const uint32_t key[2]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(0xD2511F53u) * c0;
    const uint64_t product1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

Random128 random_block(const StreamId& id, uint32_t index) {
  const uint32_t purpose_and_query = (static_cast<uint32_t>(id.purpose) << 16) | id.query;
  const uint32_t counter[4] = {index, id.sample, id.layer, purpose_and_query};
  const uint32_t key[2] = {id.seed, id.step};
  return philox4x32(counter, key);
}

uint32_t xorshift_start(const StreamId& id) {
  const uint32_t state = random_block(id, 0xFFFFFFFFu).word[0];
  return state != 0 ? state : 0x9E3779B9u;
}

}  // namespace pmt
