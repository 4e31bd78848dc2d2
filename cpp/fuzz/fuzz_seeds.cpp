// Writes some small valid images into a folder: fuzz_seeds FOLDER
#include <cstdio>
#include <string>

#include "tests/random_network.hpp"

using namespace pmt::tests;

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: pmt_fuzz_seeds FOLDER\n");
    return 2;
  }
  RandomSource random(1);
  for (int number = 0; number < 30; ++number) {
    const Head head = random.pick<Head>({Head::fully_connected, Head::conv2d, Head::pool});
    const AlignedBytes image = random_network(random, random.integer(1, 6), head);
    const std::string path = std::string(arguments[1]) + "/network" + std::to_string(number) + ".pmt";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    const bool written = file != nullptr && std::fwrite(image.data(), 1, image.size(), file) == image.size();
    if (file == nullptr || std::fclose(file) != 0 || !written) {
      std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
