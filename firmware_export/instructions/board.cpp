// The functions of a board that common/ needs: the console and the end, by semihosting.
#include "common/board.hpp"

#include "common/semihosting.hpp"

namespace pmt::board {

void print(const char* text) { semihosting::print(text); }

void exit(int status) { semihosting::exit(status); }

}  // namespace pmt::board
