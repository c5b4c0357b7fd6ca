// Drives a libFuzzer target with seeded random inputs, for compilers without libFuzzer: fuzz_x [inputs] [first seed].
// A failing input is named by its seed, which runs it alone: fuzz_x 1 <seed>.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// The sanitizers ask for these by name; a report that aborts gets its seed named like any other failure.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1";
}
extern "C" const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}

namespace {

constexpr std::size_t kMostBytes = 600;
std::uint64_t seed = 0;

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t inputs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::signal(SIGABRT, [](int) {
    std::fprintf(stderr, "while running the input of seed %llu\n", static_cast<unsigned long long>(seed));
  });
  for (seed = first; seed < first + inputs; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::uint8_t> bytes(random() % kMostBytes);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%s: %llu inputs\n", argv[0], static_cast<unsigned long long>(inputs));
  return 0;
}
