// On a Cortex-M7: solves the head of head_data.hpp and prints the checksum of its image.
#include "common/board.hpp"
#include "common/log.hpp"
#include "common/semihosting.hpp"
#include "core/base/crc32.hpp"
#include "core/learn/head_solver.hpp"
#include "head_data.hpp"

namespace {

using namespace pmt;
using firmware::Line;

alignas(16) uint8_t memory[49152];

bool read_sample(void*, int32_t index, int8_t* row, int32_t* label) {
  __builtin_memcpy(row, data_inputs + index * data_features, data_features);
  *label = data_labels[index];
  return true;
}

Status solve(float* strength) {
  Model model;
  PMT_RETURN_IF_ERROR(model.open(data_image, sizeof data_image));
  const OpRecord& op = model.op(0);
  const WritableLayer layer = {const_cast<int8_t*>(model.weights(op)), const_cast<int32_t*>(model.bias(op)),
                               const_cast<float*>(model.weight_scales(op))};
  const HeadSamples samples = {{nullptr, read_sample}, data_samples, data_folds, data_fold_count, Loss::cross_entropy};
  HeadSolver solver;
  PMT_RETURN_IF_ERROR(solver.open({&model, 0, layer, samples, 8, sequential_executor()}, memory, sizeof memory));
  PMT_RETURN_IF_ERROR(solver.choose_strength(strength));
  return solver.solve(*strength);
}

}  // namespace

void pmt::board::print(const char* text) { semihosting::print(text); }

void pmt::board::exit(int status) { semihosting::exit(status); }

int main() {
  float strength = 0.0f;
  const Status status = solve(&strength);
  if (status.ok()) {
    // All but the header's own checksum, which is of the head as it was.
    const uint32_t found = crc32(data_image + 16, sizeof data_image - 16);
    Line().text("strength ").number(static_cast<int64_t>(strength * 1000.0f)).text(" crc32 ").hex(found).print();
  } else {
    Line().text("error: ").text(message(status.code)).print();
  }
  semihosting::exit(status.ok() ? 0 : 1);
}
