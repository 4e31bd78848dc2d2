// Zephyr's declarations that the ports take, as its documentation has them; what is behind them is in zephyr.cpp.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

struct k_timeout_t {
  int64_t ticks;
};
#define K_TICKS(count) (k_timeout_t{count})
#define K_MSEC(milliseconds) (k_timeout_t{(milliseconds)*10})
#define K_NO_WAIT (k_timeout_t{0})
#define K_FOREVER (k_timeout_t{-1})

int32_t k_sleep(k_timeout_t timeout);
int32_t k_msleep(int32_t milliseconds);
uint32_t k_uptime_get_32();

struct k_msgq {
  char* buffer;
  size_t size;
  uint32_t most, at, used;
};
void k_msgq_init(k_msgq* queue, char* buffer, size_t size, uint32_t most);
int k_msgq_put(k_msgq* queue, const void* data, k_timeout_t timeout);
int k_msgq_get(k_msgq* queue, void* data, k_timeout_t timeout);

struct k_thread {
  struct {
    uintptr_t start;
    size_t size;
  } stack_info;
};
using k_tid_t = k_thread*;
using k_thread_entry_t = void (*)(void*, void*, void*);
k_tid_t k_current_get();
int k_thread_stack_space_get(const k_thread* thread, size_t* unused);

#define K_LOWEST_APPLICATION_THREAD_PRIO 14
k_tid_t define_thread(size_t stack, k_thread_entry_t entry, int priority, uint32_t options);
#define K_THREAD_DEFINE(name, stack, entry, first, second, third, priority, options, delay)       \
  static_assert((first) == nullptr && (second) == nullptr && (third) == nullptr && (delay) == 0); \
  const k_tid_t name = define_thread(stack, entry, priority, options)
