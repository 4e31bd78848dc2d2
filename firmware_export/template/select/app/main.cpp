// The application: finds out which block to train, by trying each of them; then trains it with what the card
// holds, from its newest checkpoint on, and says whether the host got the same bytes. This file is yours; the
// folders beside it are written by `pmt export`.
#include "common/block_selection.hpp"
#include "model/config.hpp"
#include "model/selection.hpp"

int main() {
  using namespace pmt;
  board::init();

  static firmware::Session session;
  static firmware::BlockSelection selection;
  bool running = selection.open(session, exported::model(), board::arena(), exported::selection);
  while (running && !selection.finished()) running = selection.try_next();
  if (!running || !selection.report()) board::exit(1);

  running = session.open(exported::model(), board::arena());
  running = running && session.check_activations() && session.resume();
  while (running && !session.finished()) running = session.step();

  return session.report();
}
