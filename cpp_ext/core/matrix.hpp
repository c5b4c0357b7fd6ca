// A non-owning view of a row-major table.
#pragma once

#include <cstddef>
#include <span>

namespace groundwire {

template <class T>
struct Matrix {
  T* data;
  std::size_t rows;
  std::size_t cols;

  std::span<T> row(std::size_t index) const { return {data + index * cols, cols}; }
};

}  // namespace groundwire
