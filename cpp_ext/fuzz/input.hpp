// Shared by every fuzz target: turns bytes into arguments, and reports what went wrong.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace groundwire::fuzz {

/// Reads choices off a string of bytes; past its end every choice is the lowest.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto choices = static_cast<std::uint64_t>(high - low) + 1;
    std::uint64_t value = byte();
    for (std::uint64_t reach = 256; reach < choices; reach *= 256) {
      value = value * 256 + byte();
    }
    return low + static_cast<std::int64_t>(value % choices);
  }

  bool one_in(std::int64_t n) { return between(1, n) == n; }

  /// Mostly a coarse grid, so that sums tie; now and then an infinity, NaN or extreme value.
  float logit() {
    constexpr float kSpecial[] = {std::numeric_limits<float>::infinity(),  -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max(),
                                  std::numeric_limits<float>::lowest(),    std::numeric_limits<float>::denorm_min()};
    return one_in(12) ? kSpecial[between(0, 5)] : static_cast<float>(between(-40, 40)) / 8.0F;
  }

 private:
  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }

  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

inline void expect(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "expected: %s\n", what);
    std::abort();
  }
}

/// Calls `work`; returns whether it refused its arguments.
template <class Work>
bool refuses(Work&& work) {
  try {
    work();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

}  // namespace groundwire::fuzz
