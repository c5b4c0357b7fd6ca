// How the core refuses an argument: one exception type, a message made of what was given and what is allowed.
#pragma once

#include <sstream>
#include <stdexcept>
#include <utility>

namespace groundwire {

/// Throws std::invalid_argument, Python's ValueError, with the parts joined as its message.
template <class... Parts>
[[noreturn]] void reject(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::invalid_argument(std::move(message).str());
}

/// Rejects unless `condition` holds. The message is only put together when it does not.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    reject(parts...);
  }
}

}  // namespace groundwire
