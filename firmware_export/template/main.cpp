// The application: trains with what the card holds and says whether the host got the same bytes.
// This file is yours; the folders beside it are written by `pmt export`.
#include "common/session.hpp"
#include "model/config.hpp"

int main() {
  using namespace pmt;
  board::init();

  static firmware::Session session;
  const firmware::ModelImage model = {exported::model_image, exported::model_bytes};
  bool running = session.open(model, "card.bin", board::arena());

  running = running && session.check_activations();
  for (int32_t step = 0; running && step < session.steps(); ++step) running = session.step(step);
  if (running) session.save("checkpoint.pmt", "checkpoint.tmp");

  return session.report();
}
