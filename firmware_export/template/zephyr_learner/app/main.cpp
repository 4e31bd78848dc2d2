// The application: a learner, or a predictor, that answers requests over the serial line, in a thread of its own. This
// file is yours; the folders beside it are written by `pmt export`.
#include <zephyr/kernel.h>

#include "common/serial.hpp"
#include "learner/service.hpp"
#include "model/config.hpp"

namespace {

void learn(void*, void*, void*) {
  using namespace pmt;
  board::init();
  board::open_serial();

  static firmware::Service service;
  const bool opened = service.open(exported::service(), board::arena());
  if (opened) {
    service.serve();
    service.report();
  }
  board::exit(opened ? 0 : 1);
}

}  // namespace

// Of the lowest priority, so that every thread of an application comes first. Zephyr has a main() where there is none.
K_THREAD_DEFINE(pmt_learner, pmt::exported::stack_bytes, learn, nullptr, nullptr, nullptr,
                K_LOWEST_APPLICATION_THREAD_PRIO, 0, 0);
