// Times a network's convolutions as oneDNN runs them, one by one, on one thread.
//
//   OMP_NUM_THREADS=1 onednn_layers FOLDER IMAGES
//
// FOLDER is what against_onednn.py wrote. Every layer is set up once for IMAGES images, with s8 and
// with u8 activations. The program then reads commands: `describe` prints per layer and type
//   index type implementation differing_values largest_difference
// and `time INDEX` prints per type of a layer
//   index type microseconds_an_image
// each ended by a line "end". So a caller can take turns with another engine, layer by layer.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>

#include "convolution.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Long against the clock and one interrupt, short enough to take turns often.
constexpr double measured_microseconds = 3000;

struct Candidate {
  int layer;
  const char* type;
  Convolution convolution;
};

std::optional<Convolution> make(const dnnl::engine& engine, const Layer& layer, Activations type, int images) {
  try {
    return Convolution(engine, layer, type, images);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

std::vector<Candidate> set_up(const dnnl::engine& engine, const std::vector<Layer>& layers, int images) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < layers.size(); ++i) {
    const int index = static_cast<int>(i);
    auto s8 = make(engine, layers[i], Activations::s8, images);
    auto u8 = make(engine, layers[i], Activations::u8, images);
    if (s8) candidates.push_back({index, "s8", std::move(*s8)});
    if (u8) candidates.push_back({index, "u8", std::move(*u8)});
  }
  return candidates;
}

double microseconds(const Convolution& convolution, dnnl::stream& stream, int64_t runs) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < runs; ++i) convolution.run(stream);
  stream.wait();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double time_one(const Convolution& convolution, dnnl::stream& stream, int images) {
  const double warm_up = microseconds(convolution, stream, 1);
  const auto runs = static_cast<int64_t>(measured_microseconds / (warm_up + 0.1)) + 1;
  return microseconds(convolution, stream, runs) / static_cast<double>(runs) / images;
}

void describe(const std::vector<Candidate>& candidates, const std::vector<Layer>& layers, dnnl::stream& stream) {
  for (const Candidate& c : candidates) {
    c.convolution.run(stream);
    stream.wait();
    const auto difference = c.convolution.compare(layers[static_cast<size_t>(c.layer)]);
    std::printf("%d %s %s %lld %d\n", c.layer, c.type, c.convolution.implementation().c_str(),
                static_cast<long long>(difference.values), difference.largest);
  }
}

void time_layer(const std::vector<Candidate>& candidates, int layer, dnnl::stream& stream, int images) {
  for (const Candidate& c : candidates) {
    if (c.layer == layer) std::printf("%d %s %.4f\n", c.layer, c.type, time_one(c.convolution, stream, images));
  }
}

void serve(const std::string& folder, int images) {
  const std::vector<Layer> layers = read_layers(folder);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const std::vector<Candidate> candidates = set_up(engine, layers, images);
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "describe") describe(candidates, layers, stream);
    if (command.rfind("time ", 0) == 0) time_layer(candidates, std::stoi(command.substr(5)), stream, images);
    std::printf("end\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: onednn_layers FOLDER IMAGES\n");
    return 2;
  }
  try {
    serve(arguments[1], std::stoi(arguments[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onednn_layers: %s\n", error.what());
    return 1;
  }
}
