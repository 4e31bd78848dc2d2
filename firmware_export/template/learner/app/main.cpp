// The application: a learner, or a predictor, that answers requests over the serial line. This file is yours; the
// folders beside it are written by `pmt export`.
#include "common/serial.hpp"
#include "learner/service.hpp"
#include "model/config.hpp"

int main() {
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
