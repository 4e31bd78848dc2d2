#include "common/verify.hpp"

#include "core/base/crc32.hpp"

namespace pmt::firmware {

void Verify::open(const Model& model, const Card& card) {
  model_ = &model;
  card_ = &card;
}

const char* Verify::op_name(int32_t op) const { return model_->name(model_->op(op).name); }

void Verify::failed(const char* what, const char* why) {
  if (ok_) first_.text("verify: ").text(what).text(": ").text(why);
  ok_ = false;
}

void Verify::failed(const CardFault& fault) {
  if (ok_) fault.describe(first_.text("verify: card: "));
  ok_ = false;
}

void Verify::compare_crc(const char* where, int32_t number, int32_t op, const char* what, uint32_t device,
                         uint32_t host, Tally* tally) {
  ++tally->compared;
  if (device == host) return;
  ++tally->different;
  if (!ok_) return;
  ok_ = false;
  first_.text("verify: ").text(where).number(number);
  if (op >= 0) first_.text(has_weights(model_->op(op)) ? " layer " : " op ").text(op_name(op));
  first_.text(" ").text(what).text(" (device crc ").hex(device).text(", host crc ").hex(host).text(")");
}

void Verify::activation(int32_t inference, int32_t op, uint32_t crc32) {
  uint32_t host = 0;
  if (!card_->activation(inference, op, &host)) return;
  compare_crc("inference ", inference, op, "activation differs", crc32, host, &activations_);
}

void Verify::result(int32_t step, const StepResult& result) {
  ResultRecord host;
  if (!card_->result(step, &host)) return;
  const struct {
    const char* what;
    int64_t device, host;
  } values[] = {{"loss sum", result.loss_sum, host.loss_sum},
                {"number of correct samples", result.correct, host.correct},
                {"number of changed weights", result.changed, host.changed}};
  bool equal = true;
  for (const auto& value : values) {
    if (value.device == value.host) continue;
    equal = false;
    if (!ok_) continue;
    ok_ = false;
    first_.text("verify: step ").number(step).text(" ").text(value.what).text(" differs (device ");
    first_.number(value.device).text(", host ").number(value.host).text(")");
  }
  ++results_.compared;
  if (!equal) ++results_.different;
}

void Verify::parameters(int32_t step, int32_t index, const Layer& layer) {
  ParameterRecord host;
  if (!card_->parameters(step, index, &host)) return;
  const uint32_t weights =
      crc32(reinterpret_cast<const uint8_t*>(layer.weights), static_cast<size_t>(layer.weight_count));
  const uint32_t bias = crc32(reinterpret_cast<const uint8_t*>(layer.bias), 4 * static_cast<size_t>(layer.channels));
  compare_crc("step ", step, layer.op, "weights differ", weights, host.weights_crc32, &parameters_);
  compare_crc("step ", step, layer.op, "biases differ", bias, host.bias_crc32, &parameters_);
}

void Verify::Tally::print(const char* what) const {
  Line line;
  line.text("verify: ").text(what).text(": ").number(compared);
  if (different == 0) {
    line.text(" equal").print();
  } else {
    line.text(" compared, ").number(different).text(different == 1 ? " differs" : " differ").print();
  }
}

bool Verify::is_complete() const {
  return card_ != nullptr && results_.compared == card_->header().steps - first_step_ &&
         activations_.compared == card_->header().inferences * card_->header().ops;
}

bool Verify::report() {
  if (!is_complete()) failed("incomplete", "the program ended before everything was compared");
  activations_.print("outputs of ops");
  results_.print("losses, hits, changes");
  parameters_.print("weights, biases");
  if (!ok_) {
    first_.print();
    return false;
  }
  Line line;
  line.text("verify: ok (").number(results_.compared).text(" steps");
  if (first_step_ > 0) line.text(" after ").number(first_step_);
  line.text(", ").number(card_->header().layers).text(" layers, ");
  line.number(activations_.compared).text(" activations)").print();
  return true;
}

}  // namespace pmt::firmware
