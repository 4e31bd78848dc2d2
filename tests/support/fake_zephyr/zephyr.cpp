// Behind the declarations: one thread, whose UART is standard input and output. Its interrupt comes while the thread
// waits. The files card.img and flash.bin stand for the storage, each where it is there; FAILS makes one of its
// functions fail.
#include <poll.h>
#include <unistd.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/storage/disk_access.h>
#include <zephyr/storage/flash_map.h>
#include <zephyr/sys/printk.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int64_t ticks_a_millisecond = 10;
constexpr uint32_t block_bytes = 512, page_bytes = 4096, write_bytes = 8;

const device* line = nullptr;
uart_irq_callback_user_data_t interrupt = nullptr;
void* interrupt_data = nullptr;
bool receives = false;
uint8_t fifo[16];
int fifo_at = 0, fifo_used = 0;

k_thread thread = {};
k_thread_entry_t thread_entry = nullptr;
int thread_priority = 0;
int64_t slept = 0;

bool fails(const char* function) {
  const char* named = std::getenv("FAILS");
  return named != nullptr && std::strcmp(named, function) == 0;
}

[[noreturn]] void end() {
  std::fprintf(stderr, "slept %lld ticks, priority %d, line %s\n", static_cast<long long>(slept), thread_priority,
               line == nullptr ? "none" : line->name);
  std::fflush(nullptr);
  _exit(0);
}

// False: nothing came in time.
bool fill_fifo(k_timeout_t timeout) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  const int64_t wait = timeout.ticks < 0 ? -1 : timeout.ticks / ticks_a_millisecond;
  if (poll(&input, 1, static_cast<int>(wait)) == 0) return false;
  fifo_at = 0;
  fifo_used = static_cast<int>(read(STDIN_FILENO, fifo, sizeof fifo));
  if (fifo_used <= 0) end();
  return true;
}

std::FILE* opened(const char* name) {
  static std::FILE* file = std::fopen(name, "r+b");
  return file;
}

bool transfer(const char* name, long at, void* to, const void* from, size_t count) {
  std::FILE* file = opened(name);
  if (file == nullptr || std::fseek(file, at, SEEK_SET) != 0) return false;
  if (to != nullptr) return std::fread(to, 1, count, file) == count;
  return std::fwrite(from, 1, count, file) == count && std::fflush(file) == 0;
}

long size_of(const char* name) {
  std::fseek(opened(name), 0, SEEK_END);
  return std::ftell(opened(name));
}

}  // namespace

struct flash_area {
} partition;

const device device_zephyr_console = {"console"}, device_pmt_uart = {"own"};

bool device_is_ready(const device*) { return !fails("device_is_ready"); }
void printk(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
}

int32_t k_sleep(k_timeout_t timeout) {
  slept += timeout.ticks;
  return 0;
}
int32_t k_msleep(int32_t) { end(); }
uint32_t k_uptime_get_32() { return static_cast<uint32_t>(slept / ticks_a_millisecond); }

void k_msgq_init(k_msgq* queue, char* buffer, size_t size, uint32_t most) { *queue = {buffer, size, most, 0, 0}; }
int k_msgq_put(k_msgq* queue, const void* data, k_timeout_t) {
  if (queue->used == queue->most) return -ENOMSG;
  std::memcpy(queue->buffer + (queue->at + queue->used++) % queue->most * queue->size, data, queue->size);
  return 0;
}
int k_msgq_get(k_msgq* queue, void* data, k_timeout_t timeout) {
  while (queue->used == 0) {
    if (!receives || !fill_fifo(timeout)) return -EAGAIN;
    interrupt(line, interrupt_data);
  }
  std::memcpy(data, queue->buffer + queue->at * queue->size, queue->size);
  queue->at = (queue->at + 1) % queue->most;
  --queue->used;
  return 0;
}

k_tid_t define_thread(size_t stack, k_thread_entry_t entry, int priority, uint32_t) {
  thread.stack_info = {0, stack};
  thread_entry = entry;
  thread_priority = priority;
  return &thread;
}
k_tid_t k_current_get() { return &thread; }
int k_thread_stack_space_get(const k_thread* of, size_t* unused) {
  *unused = of->stack_info.size - 2000;
  return 0;
}

int uart_irq_callback_user_data_set(const device* dev, uart_irq_callback_user_data_t callback, void* user_data) {
  line = dev;
  interrupt = callback;
  interrupt_data = user_data;
  return fails("uart_irq_callback_user_data_set") ? -ENOSYS : 0;
}
void uart_irq_rx_enable(const device*) { receives = true; }
int uart_irq_update(const device*) { return 1; }
int uart_irq_rx_ready(const device*) { return fifo_at < fifo_used ? 1 : 0; }
int uart_fifo_read(const device*, uint8_t* data, int size) {
  int count = 0;
  while (count < size && fifo_at < fifo_used) data[count++] = fifo[fifo_at++];
  return count;
}
void uart_poll_out(const device*, unsigned char character) {
  if (write(STDOUT_FILENO, &character, 1) != 1) end();
}

int disk_access_init(const char* disk) {
  return std::strcmp(disk, "SD2") == 0 && opened("card.img") != nullptr ? 0 : -EIO;
}
int disk_access_ioctl(const char*, uint8_t command, void* buffer) {
  if (command == DISK_IOCTL_CTRL_SYNC) return 0;
  const bool counts = command == DISK_IOCTL_GET_SECTOR_COUNT;
  *static_cast<uint32_t*>(buffer) = counts ? static_cast<uint32_t>(size_of("card.img")) / block_bytes : block_bytes;
  return 0;
}
int disk_access_read(const char*, uint8_t* data, uint32_t first, uint32_t count) {
  return transfer("card.img", long{first} * block_bytes, data, nullptr, size_t{count} * block_bytes) ? 0 : -EIO;
}
int disk_access_write(const char*, const uint8_t* data, uint32_t first, uint32_t count) {
  if (fails("disk_access_write")) return -EIO;
  return transfer("card.img", long{first} * block_bytes, nullptr, data, size_t{count} * block_bytes) ? 0 : -EIO;
}

int flash_area_open(uint8_t, const flash_area** area) {
  *area = &partition;
  return opened("flash.bin") != nullptr ? 0 : -ENODEV;
}
int flash_area_read(const flash_area*, off_t offset, void* to, size_t count) {
  return transfer("flash.bin", offset, to, nullptr, count) ? 0 : -EIO;
}
// Onto erased bytes alone, in whole units.
int flash_area_write(const flash_area*, off_t offset, const void* from, size_t count) {
  if (fails("flash_area_write") || offset % write_bytes != 0 || count % write_bytes != 0) return -EIO;
  for (size_t i = 0; i < count; ++i) {
    uint8_t byte = 0;
    if (!transfer("flash.bin", offset + static_cast<off_t>(i), &byte, nullptr, 1) || byte != 0xFF) return -EIO;
  }
  if (fails("a worn cell")) return 0;
  return transfer("flash.bin", offset, nullptr, from, count) ? 0 : -EIO;
}
int flash_area_erase(const flash_area*, off_t offset, size_t count) {
  if (offset % page_bytes != 0 || count % page_bytes != 0) return -EINVAL;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t erased = 0xFF;
    if (!transfer("flash.bin", offset + static_cast<off_t>(i), nullptr, &erased, 1)) return -EIO;
  }
  return 0;
}
uint32_t flash_area_align(const flash_area*) { return fails("flash_area_align") ? 64 : write_bytes; }

int main() {
  thread_entry(nullptr, nullptr, nullptr);
  return 1;
}
