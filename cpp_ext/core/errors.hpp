// Argument checks of the core: one exception type, whose message states what was given and what is allowed.
#pragma once

#include <concepts>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace groundwire {

/// Throws std::invalid_argument, which becomes Python's ValueError, with the joined parts as its message.
template <class... Parts>
[[noreturn]] void reject(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::invalid_argument(std::move(message).str());
}

/// A number or a string literal: passing it builds nothing.
template <class Part>
concept PlainPart = std::is_arithmetic_v<Part> || std::convertible_to<const Part&, const char*>;

/// Rejects unless `condition` holds, and builds the message only then. A part that must be built first does not compile
/// here; it belongs in `if (!condition) [[unlikely]] { reject(...); }`.
template <PlainPart... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    reject(parts...);
  }
}

}  // namespace groundwire
