#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "core/text_match.hpp"

namespace groundwire::bindings {
namespace {

using namespace nb::literals;

/// `\w` and `\s` by the Unicode version of the running interpreter. These look-ups in constant tables need no GIL.
constexpr CharacterClasses kInterpreter = {
    [](char32_t c) { return c == U'_' || Py_UNICODE_ISALNUM(c); },
    [](char32_t c) { return Py_UNICODE_ISSPACE(c) != 0; },
};

/// The code points of text.lower(), by the interpreter's own rules: final sigma, and letters that become several.
std::u32string lowered(const nb::str& text) {
  const nb::object lower = nb::handle(reinterpret_cast<PyObject*>(&PyUnicode_Type)).attr("lower")(text);
  const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(lower.ptr()));
  const auto kind = PyUnicode_KIND(lower.ptr());
  const void* data = PyUnicode_DATA(lower.ptr());
  std::u32string code_points(size, U'\0');
  for (std::size_t i = 0; i < size; ++i) {
    code_points[i] = PyUnicode_READ(kind, data, static_cast<Py_ssize_t>(i));
  }
  return code_points;
}

nb::object to_python(const std::u32string& text) {
  PyObject* result = PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, text.data(), static_cast<Py_ssize_t>(text.size()));
  if (result == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(result);
}

}  // namespace

void register_text_match(nb::module_& module) {
  module.def(
      "clean",
      [](const nb::str& text) {
        const std::u32string lower = lowered(text);
        return nb::borrow<nb::str>(to_python(unlocked([&] { return clean(lower, kInterpreter); })));
      },
      "text"_a, "Lower-case, delete ASCII punctuation, drop the words a an the in our, squeeze whitespace.");

  module.def(
      "exact_match",
      [](const nb::str& a, const nb::str& b) {
        const std::u32string lower_a = lowered(a);
        const std::u32string lower_b = lowered(b);
        return unlocked([&] { return exact_match(lower_a, lower_b, kInterpreter); });
      },
      "a"_a, "b"_a, "Whether clean(a) == clean(b).");

  module.def(
      "token_f1",
      [](const nb::str& prediction, const nb::str& reference) {
        const std::u32string lower_prediction = lowered(prediction);
        const std::u32string lower_reference = lowered(reference);
        return unlocked([&] { return token_f1(lower_prediction, lower_reference, kInterpreter); });
      },
      "prediction"_a, "reference"_a, "Bag-of-words F1 of the two cleaned texts; 0.0 without a common token.");
}

}  // namespace groundwire::bindings
