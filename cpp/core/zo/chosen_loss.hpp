// The question which loss the options choose, in a header of its own: few sources ask it.
#pragma once

#include "core/base/linked/losses.hpp"
#include "core/base/linked/parts.hpp"
#include "core/zo/options.hpp"

namespace pmt {

// Known while compiling where the loss is not linked, or no other is.
inline bool is_loss(const TrainerOptions& options, Loss loss) { return is_part(linked::losses, options.loss, loss); }

}  // namespace pmt
