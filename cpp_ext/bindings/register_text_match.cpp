#include <nanobind/nanobind.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "core/text_match.hpp"

namespace groundwire::bindings {
namespace {

using namespace nb::literals;

/// `\w` and `\s` by the Unicode version of the running interpreter, read from it in pages of 256 code points: the
/// stable ABI has no such tables. A page is filled with the GIL held, before a text with one of its code points is read
/// without.
class CharacterTable {
 public:
  static constexpr std::size_t kPage = 256;
  static constexpr std::uint8_t kWord = 1;
  static constexpr std::uint8_t kSpace = 2;

  /// Makes the classes of these code points known, and that of the space, which takes the place of dropped words.
  static void fill(std::u32string_view text) {
    fill_page_of(U' ');
    for (const char32_t c : text) {
      fill_page_of(c);
    }
  }

  static bool has(char32_t c, std::uint8_t flag) {
    return ((*pages_[c / kPage].load(std::memory_order_acquire))[c % kPage] & flag) != 0;
  }

 private:
  using Page = std::array<std::uint8_t, kPage>;

  static void fill_page_of(char32_t code_point) {
    const std::size_t index = code_point / kPage;
    if (pages_[index].load(std::memory_order_acquire) != nullptr) {
      return;
    }
    auto page = std::make_unique<Page>();
    for (std::size_t i = 0; i < kPage; ++i) {
      const auto c = static_cast<int>(index * kPage + i);
      const nb::object character = nb::steal(check(PyUnicode_FromOrdinal(c)));
      const bool is_word = c == '_' || nb::cast<bool>(character.attr("isalnum")());
      const bool is_space = nb::cast<bool>(character.attr("isspace")());
      (*page)[i] = static_cast<std::uint8_t>((is_word ? kWord : 0) | (is_space ? kSpace : 0));
    }
    // Another thread may have filled the page meanwhile. A page that is in the table stays until the process ends.
    const Page* none = nullptr;
    if (pages_[index].compare_exchange_strong(none, page.get())) {
      static_cast<void>(page.release());
    }
  }

  static PyObject* check(PyObject* result) {
    if (result == nullptr) {
      throw nb::python_error();
    }
    return result;
  }

  static inline std::array<std::atomic<const Page*>, 0x110000 / kPage> pages_{};
};

constexpr CharacterClasses kInterpreter = {
    [](char32_t c) { return CharacterTable::has(c, CharacterTable::kWord); },
    [](char32_t c) { return CharacterTable::has(c, CharacterTable::kSpace); },
};

/// The code points of text.lower(), by the interpreter's own rules: final sigma, and letters that become several.
std::u32string lowered(const nb::str& text) {
  const nb::object lower = nb::handle(reinterpret_cast<PyObject*>(&PyUnicode_Type)).attr("lower")(text);
  std::u32string code_points(nb::len(lower), U'\0');
  static_assert(sizeof(char32_t) == sizeof(Py_UCS4));
  auto* buffer = reinterpret_cast<Py_UCS4*>(code_points.data());
  if (PyUnicode_AsUCS4(lower.ptr(), buffer, static_cast<Py_ssize_t>(code_points.size()), 0) == nullptr) {
    throw nb::python_error();
  }
  CharacterTable::fill(code_points);
  return code_points;
}

nb::object to_python(const std::u32string& text) {
  int order = std::endian::native == std::endian::little ? -1 : 1;
  const auto bytes = static_cast<Py_ssize_t>(text.size() * sizeof(char32_t));
  PyObject* result = PyUnicode_DecodeUTF32(reinterpret_cast<const char*>(text.data()), bytes, "surrogatepass", &order);
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
