// Stands in for a board's clock and watchdog, where drivers are tested alone.
#include "common/board.hpp"
#include "simulated_bus.hpp"

uint32_t pmt::board::milliseconds() { return test::bus_milliseconds(); }
void pmt::board::feed_watchdog() {}
