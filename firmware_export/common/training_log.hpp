// The lines that a run prints, and that `pmt monitor` reads: see docs/guides/card.md. A line that is cut off
// matches none of them.
#pragma once

#include "common/log.hpp"
#include "core/card/card_format.hpp"
#include "core/train/trainer.hpp"

namespace pmt::firmware {

void log_model(const CardHeader& header, size_t model_bytes, int32_t queries);
void log_resume(const CardHeader& header, const SlotHeader& checkpoint);
void log_step(int32_t index, const StepRecord& record, const StepResult& result, uint32_t milliseconds,
              int32_t steps_left);
void log_checkpoint(const SlotHeader& checkpoint, uint32_t milliseconds);
void log_use(const char* what, size_t used, size_t bytes, const char* how);
void log_retries(int32_t retries);

}  // namespace pmt::firmware
