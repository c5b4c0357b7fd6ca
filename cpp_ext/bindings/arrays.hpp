// Array arguments are views of the caller's memory; returned arrays own theirs.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/matrix.hpp"

namespace groundwire::bindings {

namespace nb = nanobind;

/// An argument of any type and shape. The checks below name what is wrong with it; nanobind's overload mismatch would
/// only say that the arguments are "incompatible".
using Array = nb::ndarray<nb::ro, nb::device::cpu>;

inline std::string type_name(nb::dlpack::dtype type) {
  static constexpr std::array<const char*, 7> kKinds = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  return (type.code < kKinds.size() ? kKinds[type.code] : "unknown") + std::to_string(type.bits);
}

inline std::string shape_name(const Array& array) {
  std::string name = "(";
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    name += (i == 0 ? "" : ", ") + std::to_string(array.shape(i));
  }
  return name + (array.ndim() == 1 ? ",)" : ")");
}

inline bool same_shape(const Array& a, const Array& b) {
  return std::ranges::equal(std::span(a.shape_ptr(), a.ndim()), std::span(b.shape_ptr(), b.ndim()));
}

inline bool is_contiguous(const Array& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) {
      return array.size() == 0;
    }
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

/// The values of `array`, checked to be T, in `dimensions` dimensions, C-contiguous and aligned.
template <class T>
const T* checked_data(const Array& array, const char* name, std::size_t dimensions) {
  const auto aligned = reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) == 0;
  if (array.dtype() != nb::dtype<T>() || array.ndim() != dimensions || !is_contiguous(array) || !aligned) {
    reject(name, " must be a C-contiguous array of ", type_name(nb::dtype<T>()), " in ", dimensions,
           dimensions == 1 ? " dimension" : " dimensions", ", got ", type_name(array.dtype()), " of shape ",
           shape_name(array), is_contiguous(array) && aligned ? "" : ", not contiguous");
  }
  return static_cast<const T*>(array.data());
}

template <class T>
std::span<const T> as_vector(const Array& array, const char* name) {
  const T* data = checked_data<T>(array, name, 1);
  return {data, array.shape(0)};
}

template <class T>
Matrix<const T> as_matrix(const Array& array, const char* name) {
  const T* data = checked_data<T>(array, name, 2);
  return {data, array.shape(0), array.shape(1)};
}

/// A numpy array of the given shape that owns `values`.
template <class T, class... Shape>
nb::object to_numpy(std::vector<T>&& values, Shape... shape) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  const nb::capsule owner(owned.get(), [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  static_cast<void>(owned.release());
  nb::ndarray<nb::numpy, T> array(data, {static_cast<std::size_t>(shape)...}, owner);
  // Exported 64-bit integers arrive as numpy's longlong, which equals int64 but is another scalar type.
  return array.cast().attr("view")(type_name(nb::dtype<T>()).c_str());
}

/// Calls `work` without the GIL.
template <class Work>
auto unlocked(Work&& work) {
  nb::gil_scoped_release release;
  return work();
}

}  // namespace groundwire::bindings
