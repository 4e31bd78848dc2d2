// The application: trains with what the card holds, from its newest checkpoint on, and says whether
// the host got the same bytes. This file is yours; the folders beside it are written by `pmt export`.
#include "common/session.hpp"
#include "model/config.hpp"

int main() {
  using namespace pmt;
  board::init();

  static firmware::Session session;
  bool running = session.open(exported::model(), board::arena());

  running = running && session.check_activations() && session.resume();
  while (running && !session.finished()) running = session.step();

  return session.report();
}
