#include "convolution.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

using dnnl::memory;
using Data = memory::data_type;
using Tag = memory::format_tag;

memory::dims weight_dims(const Layer& l) {
  if (l.depthwise) return {l.out_c, 1, 1, l.kernel_h, l.kernel_w};
  return {l.out_c, l.in_c, l.kernel_h, l.kernel_w};
}

Tag plain_weights(const Layer& l) { return l.depthwise ? Tag::goihw : Tag::oihw; }

// Padding that makes the last window end where it does; less than 0 where the stride leaves rows out.
memory::dim end_padding(int in, int out, int kernel, int stride, int begin) {
  return (out - 1) * stride + kernel - in - begin;
}

dnnl::primitive_attr attributes(const Layer& l) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_output_scales(1 << 1, l.scales);
  attr.set_zero_points(DNNL_ARG_SRC, 0, {DNNL_RUNTIME_S32_VAL});
  attr.set_zero_points(DNNL_ARG_DST, 0, {DNNL_RUNTIME_S32_VAL});
  if (l.clamp_min > -128 || l.clamp_max < 127) {
    dnnl::post_ops clamp;
    clamp.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, static_cast<float>(l.clamp_min - l.out_zero),
                         static_cast<float>(l.clamp_max - l.out_zero));
    attr.set_post_ops(clamp);
  }
  return attr;
}

dnnl::convolution_forward::primitive_desc describe(const dnnl::engine& engine, const Layer& l, Data type, int images) {
  const memory::desc source({images, l.in_c, l.in_h, l.in_w}, type, Tag::nhwc);
  const memory::desc weights(weight_dims(l), Data::s8, Tag::any);
  // float: acc + bias shall not wrap, as in pmt.
  const memory::desc bias({l.out_c}, Data::f32, Tag::x);
  const memory::desc destination({images, l.out_c, l.out_h, l.out_w}, type, Tag::nhwc);
  const dnnl::convolution_forward::desc operation(dnnl::prop_kind::forward_inference,
                                                  dnnl::algorithm::convolution_direct, source, weights, bias,
                                                  destination, {l.stride_h, l.stride_w}, {l.pad_top, l.pad_left},
                                                  {end_padding(l.in_h, l.out_h, l.kernel_h, l.stride_h, l.pad_top),
                                                   end_padding(l.in_w, l.out_w, l.kernel_w, l.stride_w, l.pad_left)});
  return {operation, attributes(l), engine};
}

memory one_number(const dnnl::engine& engine, int32_t value) {
  memory m({{1}, Data::s32, Tag::x}, engine);
  *static_cast<int32_t*>(m.get_data_handle()) = value;
  return m;
}

}  // namespace

Convolution::Convolution(const dnnl::engine& engine, const Layer& layer, Activations activations, int images)
    : offset_(activations == Activations::u8 ? 128 : 0), images_(images) {
  const Data type = activations == Activations::u8 ? Data::u8 : Data::s8;
  const auto pd = describe(engine, layer, type, images);
  implementation_ = pd.impl_info_str();
  source_ = memory(pd.src_desc(), engine);
  destination_ = memory(pd.dst_desc(), engine);
  scratch_ = memory(pd.scratchpad_desc(), engine);
  source_zero_ = one_number(engine, layer.in_zero + offset_);
  destination_zero_ = one_number(engine, layer.out_zero + offset_);
  bias_ = memory(pd.bias_desc(), engine);
  std::copy(layer.bias.begin(), layer.bias.end(), static_cast<float*>(bias_.get_data_handle()));
  fill_input(layer);
  set_weights(engine, layer, pd.weights_desc());
  primitive_ = dnnl::convolution_forward(pd);
  arguments_ = {{DNNL_ARG_SRC, source_},
                {DNNL_ARG_WEIGHTS, weights_},
                {DNNL_ARG_BIAS, bias_},
                {DNNL_ARG_DST, destination_},
                {DNNL_ARG_SCRATCHPAD, scratch_},
                {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, source_zero_},
                {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, destination_zero_}};
}

void Convolution::fill_input(const Layer& layer) {
  auto* values = static_cast<uint8_t*>(source_.get_data_handle());
  for (int i = 0; i < images_; ++i) {
    for (const int8_t value : layer.input) *values++ = static_cast<uint8_t>(value + offset_);
  }
}

void Convolution::set_weights(const dnnl::engine& engine, const Layer& layer, const memory::desc& wanted) {
  memory plain({weight_dims(layer), Data::s8, plain_weights(layer)}, engine);
  std::memcpy(plain.get_data_handle(), layer.weights.data(), layer.weights.size());
  weights_ = memory(wanted, engine);
  dnnl::stream stream(engine);
  dnnl::reorder(plain, weights_).execute(stream, plain, weights_);
  stream.wait();
}

Convolution::Difference Convolution::compare(const Layer& layer) const {
  const auto* values = static_cast<const uint8_t*>(destination_.get_data_handle());
  Difference difference = {0, 0};
  for (int i = 0; i < images_; ++i) {
    for (const int8_t expected : layer.expected) {
      const uint8_t stored = *values++;
      const int value = offset_ != 0 ? stored - offset_ : static_cast<int8_t>(stored);
      difference.values += value != expected;
      difference.largest = std::max(difference.largest, std::abs(value - expected));
    }
  }
  return difference;
}
