#include "common/training_log.hpp"

#include "core/zo/loss_units.hpp"

namespace pmt::firmware {

void log_model(const CardHeader& header, size_t model_bytes, int32_t queries) {
  Line line;
  line.text("model: ").number(header.ops).text(" ops, ");
  line.number(static_cast<int64_t>(model_bytes)).text(" bytes in flash").print();
  line.text("train: ").number(header.layers).text(" layers, ").number(header.steps).text(" steps of up to ");
  line.number(header.batch).text(" samples, ").number(queries).text(" queries, a checkpoint every ");
  line.number(header.save_interval).text(header.save_interval == 1 ? " step" : " steps").print();
}

void log_resume(const CardHeader& header, const SlotHeader& checkpoint) {
  if (checkpoint.sequence == 0) return;
  Line line;
  line.text("resume: ").number(checkpoint.steps).text(" of ").number(header.steps).text(" steps done, checkpoint ");
  line.number(checkpoint.sequence).print();
}

void log_step(int32_t index, const StepRecord& record, const StepResult& result, uint32_t milliseconds,
              int32_t steps_left) {
  Line line;
  line.text("step ").number(index).text(": loss ");
  line.ratio(result.loss_sum, int64_t{record.samples} << loss_fraction_bits, 4);
  line.text(", accuracy ").ratio(result.correct, record.samples, 3).text(", ");
  line.number(result.changed).text(" weights changed, ");
  line.number(milliseconds).text(" ms, ").number(steps_left).text(" to go").print();
}

void log_checkpoint(const SlotHeader& checkpoint, uint32_t milliseconds) {
  Line line;
  line.text("checkpoint ").number(checkpoint.sequence).text(": ").number(checkpoint.steps).text(" steps done, ");
  line.number(milliseconds).text(" ms").print();
}

void log_use(const char* what, size_t used, size_t bytes, const char* how) {
  Line line;
  line.text(what).text(": ").number(static_cast<int64_t>(used)).text(" of ");
  line.number(static_cast<int64_t>(bytes)).text(how).print();
}

void log_retries(int32_t retries) {
  if (retries > 0) Line().text("card: ").number(retries).text(retries == 1 ? " retry" : " retries").print();
}

}  // namespace pmt::firmware
