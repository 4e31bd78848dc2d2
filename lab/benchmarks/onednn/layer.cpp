#include "layer.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace {

template <typename T>
void read_array(std::istream& stream, int64_t count, std::vector<T>& values) {
  values.resize(static_cast<size_t>(count));
  stream.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!stream) throw std::runtime_error("layers.bin ends early");
}

Layer parse(const std::string& line) {
  Layer l;
  std::istringstream fields(line);
  fields >> l.name >> l.depthwise >> l.in_h >> l.in_w >> l.in_c >> l.out_h >> l.out_w >> l.out_c >> l.kernel_h >>
      l.kernel_w >> l.stride_h >> l.stride_w >> l.pad_top >> l.pad_left >> l.in_zero >> l.out_zero >> l.clamp_min >>
      l.clamp_max;
  if (!fields) throw std::runtime_error("layers.txt: not a layer: " + line);
  return l;
}

}  // namespace

std::vector<Layer> read_layers(const std::string& folder) {
  std::ifstream text(folder + "/layers.txt");
  std::ifstream data(folder + "/layers.bin", std::ios::binary);
  if (!text || !data) throw std::runtime_error(folder + " holds no layers.txt and layers.bin");
  std::vector<Layer> layers;
  for (std::string line; std::getline(text, line);) {
    Layer l = parse(line);
    read_array(data, int64_t{1} * l.in_h * l.in_w * l.in_c, l.input);
    read_array(data, int64_t{1} * l.out_c * (l.depthwise ? 1 : l.in_c) * l.kernel_h * l.kernel_w, l.weights);
    read_array(data, l.out_c, l.bias);
    read_array(data, l.out_c, l.scales);
    read_array(data, int64_t{1} * l.out_h * l.out_w * l.out_c, l.expected);
    layers.push_back(std::move(l));
  }
  return layers;
}
