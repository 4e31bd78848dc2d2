// Trains with what the card holds, from its newest checkpoint on, and says whether the host got the same
// bytes. Compile with -std=gnu++17 and -ffp-contract=off: see README.md.
#include <pmt_firmware.h>

static pmt::firmware::Session session;

void setup() {
  pmt::board::init();
  bool running = session.open(pmt::exported::model(), pmt::board::arena());

  running = running && session.check_activations() && session.resume();
  while (running && !session.finished()) running = session.step();

  pmt::board::exit(session.report());
}

void loop() {}
