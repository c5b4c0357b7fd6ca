// Argument checks of the core: one exception type, whose message states what was given and what is allowed.
#pragma once

#include <sstream>
#include <stdexcept>
#include <utility>

namespace groundwire {

/// Throws std::invalid_argument, which becomes Python's ValueError, with the joined parts as its message.
template <class... Parts>
[[noreturn]] void reject(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::invalid_argument(std::move(message).str());
}

/// Rejects unless `condition` holds. Builds the message only when it does not.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    reject(parts...);
  }
}

}  // namespace groundwire
