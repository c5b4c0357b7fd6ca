// Text matching against a reference implementation that follows the definition pass by pass, as a regular expression
// engine would.

#include "core/text_match.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/input.hpp"

namespace groundwire::fuzz {
namespace {

constexpr std::u32string_view kPunctuation = U"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// A small made-up Unicode: e-acute and a letter beyond the first plane are word characters; the spaces are the space,
/// the line feed and U+00A0.
bool is_word(char32_t c) {
  return (U'a' <= c && c <= U'z') || (U'0' <= c && c <= U'9') || c == U'_' || c == 0xE9 || c == 0x10400;
}
bool is_space(char32_t c) {
  return c == U' ' || c == U'\n' || c == 0xA0;
}

std::u32string replace_all(std::u32string text, const std::u32string& from, const std::u32string& to) {
  for (std::size_t at = text.find(from); at != std::u32string::npos; at = text.find(from)) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::u32string slow_clean(std::u32string text) {
  for (const char32_t mark : kPunctuation) {
    text = replace_all(text, std::u32string(1, mark), U"");
  }
  const auto word_at = [&](std::size_t i) { return i < text.size() && is_word(text[i]); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const std::u32string_view word : {U"a", U"an", U"the", U"in", U"our"}) {
      const bool starts = i == 0 || !word_at(i - 1);
      if (starts && text.compare(i, word.size(), word) == 0 && !word_at(i + word.size())) {
        text.replace(i, word.size(), U" ");
        break;
      }
    }
  }
  std::ranges::replace_if(text, is_space, U' ');
  text = replace_all(U" " + text + U" ", U"  ", U" ");
  return text.size() < 2 ? U"" : text.substr(1, text.size() - 2);
}

std::map<std::u32string, int> count_words(const std::u32string& cleaned) {
  std::map<std::u32string, int> counts;
  std::u32string word;
  for (const char32_t c : cleaned + U" ") {
    if (c != U' ') {
      word += c;
    } else if (!word.empty()) {
      ++counts[word];
      word.clear();
    }
  }
  return counts;
}

double slow_f1(const std::u32string& prediction, const std::u32string& reference) {
  const auto predicted = count_words(slow_clean(prediction));
  auto expected = count_words(slow_clean(reference));
  double common = 0;
  double predicted_words = 0;
  double expected_words = 0;
  for (const auto& [word, count] : predicted) {
    common += std::min(count, expected[word]);
    predicted_words += count;
  }
  for (const auto& [word, count] : expected) {
    expected_words += count;
  }
  if (common == 0) {
    return 0;
  }
  return 2 * (common / predicted_words) * (common / expected_words) /
         (common / predicted_words + common / expected_words);
}

char32_t character_from(Input& input) {
  constexpr std::u32string_view kCommon = U"aanntheinourxs  \n\u00A0\u00E9\u0301\U00010400.,-_'";
  constexpr char32_t kOdd[] = {0xD800, 0xDFFF, 0x10FFFF, 0xFF01};
  if (input.one_in(12)) {
    return input.one_in(4) ? kOdd[input.between(0, 3)] : static_cast<char32_t>(input.between(0, 127));
  }
  return kCommon[static_cast<std::size_t>(input.between(0, std::ssize(kCommon) - 1))];
}

std::u32string text_from(Input& input) {
  std::u32string text;
  for (std::int64_t i = input.between(0, 60); i > 0; --i) {
    text += character_from(input);
  }
  return text;
}

}  // namespace
}  // namespace groundwire::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace groundwire::fuzz;
  constexpr groundwire::CharacterClasses kClasses = {is_word, is_space};
  Input input(data, size);
  const std::u32string a = text_from(input);
  const std::u32string b = input.one_in(4) ? a + U" the" : text_from(input);
  expect(groundwire::clean(a, kClasses) == slow_clean(a), "clean equals its reference implementation");
  expect(groundwire::exact_match(a, b, kClasses) == (slow_clean(a) == slow_clean(b)),
         "exact_match equals its reference implementation");
  expect(groundwire::token_f1(a, b, kClasses) == slow_f1(a, b), "token_f1 equals its reference implementation");
  return 0;
}
