#include "drivers/sd/protocol.hpp"

namespace pmt::sd {

board::CardStatus status_of(uint32_t card_status) {
  using board::CardStatus;
  if ((card_status & (status_out_of_range | status_address_error)) != 0) return CardStatus::out_of_range;
  if ((card_status & status_write_protected) != 0) return CardStatus::write_protected;
  return (card_status & status_any_error) != 0 ? CardStatus::failed : CardStatus::ok;
}

// Version 1: (C_SIZE + 1) * 2^(C_SIZE_MULT + 2) blocks of 2^READ_BL_LEN bytes. Version 2 (SDHC, SDXC):
// (C_SIZE + 1) * 1024 blocks of 512 bytes.
CardSize size_of(const uint32_t (&csd)[4]) {
  const bool protects = (csd[3] & 3u << 12) != 0;  // PERM_WRITE_PROTECT, TMP_WRITE_PROTECT
  const uint32_t version = csd[0] >> 30;
  if (version == 1) {
    const uint32_t size = (csd[1] & 0x3F) << 16 | csd[2] >> 16;
    return {(size + 1) * 1024, protects};
  }
  const uint32_t block_log2 = csd[1] >> 16 & 15;
  if (version != 0 || block_log2 < 9 || block_log2 > 11) return {0, protects};
  const uint32_t size = (csd[1] & 0x3FF) << 2 | csd[2] >> 30;
  const uint32_t multiplier_log2 = (csd[2] >> 15 & 7) + 2;
  return {(size + 1) << (multiplier_log2 + block_log2 - 9), protects};
}

}  // namespace pmt::sd
