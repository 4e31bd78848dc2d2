// Linked; `pmt export` writes this file anew, as its program needs it.
#pragma once

namespace pmt::linked {
constexpr bool reliability = true;
}
