#include "host/team.hpp"

#include <algorithm>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define PMT_FORKS
#endif

namespace pmt::host {
namespace {

constexpr std::chrono::milliseconds poll_interval(100);

std::atomic<bool> threads_used{false}, threads_lost{false};

void lose_threads() {
  if (threads_used) threads_lost = true;
}

void watch_forks() {
#ifdef PMT_FORKS
  static const int registered = pthread_atfork(nullptr, nullptr, lose_threads);
  (void)registered;
#endif
}

int32_t this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

}  // namespace

int32_t thread_count(int32_t requested) {
#ifdef _OPENMP
  if (threads_lost) return 1;
  return requested > 0 ? requested : omp_get_max_threads();
#else
  (void)requested;
  return 1;
#endif
}

int32_t start_threads(int32_t wanted) {
  const int32_t threads = thread_count(wanted);
  if (threads > 1) {
    watch_forks();
    threads_used = true;
  }
  return threads;
}

Team::Team(int32_t threads, std::function<bool()> should_stop)
    : threads_(thread_count(threads)), should_stop_(std::move(should_stop)), asked_(std::chrono::steady_clock::now()) {}

Executor Team::executor() { return {threads_, this, run, stopping}; }

bool Team::run(void* context, int32_t count, Executor::Task task, void* argument, bool may_stop) {
  Team& team = *static_cast<Team*>(context);
  team.stop_ = false;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(start_threads(std::clamp(count, 1, team.threads_)))
#endif
  for (int32_t i = 0; i < count; ++i) {
    const int32_t worker = this_thread();
    if (!may_stop || !stopping(context, worker)) task(argument, i, worker);
  }
  return !team.stop_;
}

bool Team::stopping(void* context, int32_t worker) {
  Team& team = *static_cast<Team*>(context);
  if (worker == 0 && team.should_stop_ && !team.stop_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - team.asked_ >= poll_interval) {
      team.asked_ = now;
      if (team.should_stop_()) team.stop_ = true;
    }
  }
  return team.stop_;
}

}  // namespace pmt::host
