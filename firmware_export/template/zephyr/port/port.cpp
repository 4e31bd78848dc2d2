// The functions of common/board.hpp on Zephyr but print(): the SD card's disk, kernel clock, stack of the thread.
#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>
#include <zephyr/storage/disk_access.h>
#include <zephyr/sys/printk.h>

#include "common/board.hpp"
#include "model/config.hpp"

namespace pmt::board {
namespace {

// The disk of the device tree; before Zephyr 4 its name is a setting, of which this is the default.
#if DT_HAS_COMPAT_STATUS_OKAY(zephyr_sdmmc_disk)
constexpr char disk[] = DT_PROP_OR(DT_COMPAT_GET_ANY_STATUS_OKAY(zephyr_sdmmc_disk), disk_name, "SD");
#elif DT_HAS_COMPAT_STATUS_OKAY(st_stm32_sdmmc)
constexpr char disk[] = DT_PROP_OR(DT_COMPAT_GET_ANY_STATUS_OKAY(st_stm32_sdmmc), disk_name, "SD");
#else
constexpr char disk[] = "SD";
#endif

alignas(16) uint8_t memory[exported::arena_bytes];
uint32_t card_blocks = 0;

CardStatus status_of(int error) {
  if (error == 0) return CardStatus::ok;
  if (error == -ETIMEDOUT) return CardStatus::timeout;
  if (error == -EILSEQ) return CardStatus::checksum;
  return error == -EROFS ? CardStatus::write_protected : CardStatus::failed;
}

}  // namespace

void init() { firmware::paint(memory, sizeof memory); }

void exit(int status) {
  printk("exit: %d\n", status);
  for (;;) k_msleep(1000);
}

Memory arena() { return {memory, sizeof memory, sizeof memory}; }

StackUse stack_use() {
#if defined(CONFIG_INIT_STACKS) && defined(CONFIG_THREAD_STACK_INFO)
  size_t unused = 0;
  const size_t bytes = k_current_get()->stack_info.size;
  if (k_thread_stack_space_get(k_current_get(), &unused) == 0) return {bytes - unused, bytes};
#endif
  return {0, 0};
}

uint32_t milliseconds() { return k_uptime_get_32(); }

// Between layers, or steps of a learner: a tick for threads of any priority, which one that never waits would starve.
void feed_watchdog() { k_sleep(K_TICKS(1)); }

void set_led(bool) {}

CardStatus open_card(uint32_t* blocks) {
  *blocks = 0;
  uint32_t sector_bytes = 0;
  if (disk_access_init(disk) != 0) return CardStatus::absent;
  const int counted = disk_access_ioctl(disk, DISK_IOCTL_GET_SECTOR_COUNT, &card_blocks);
  const int measured = disk_access_ioctl(disk, DISK_IOCTL_GET_SECTOR_SIZE, &sector_bytes);
  if (counted != 0 || measured != 0 || sector_bytes != block_bytes) return CardStatus::failed;
  *blocks = card_blocks;
  return CardStatus::ok;
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  return status_of(disk_access_read(disk, static_cast<uint8_t*>(bytes), first, count));
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  const CardStatus status = status_of(disk_access_write(disk, static_cast<const uint8_t*>(bytes), first, count));
  if (status != CardStatus::ok) return status;
  return status_of(disk_access_ioctl(disk, DISK_IOCTL_CTRL_SYNC, nullptr));
}

}  // namespace pmt::board
