#include "core/text_match.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <vector>

namespace groundwire {
namespace {

constexpr std::array<std::u32string_view, 5> kDroppedWords = {U"a", U"an", U"the", U"in", U"our"};

bool is_punctuation(char32_t c) {
  return (U'!' <= c && c <= U'/') || (U':' <= c && c <= U'@') || (U'[' <= c && c <= U'`') || (U'{' <= c && c <= U'~');
}

/// The words of a cleaned text, sorted.
std::vector<std::u32string_view> bag_of_words(std::u32string_view cleaned) {
  std::vector<std::u32string_view> words;
  while (!cleaned.empty()) {
    const std::size_t length = std::min(cleaned.find(U' '), cleaned.size());
    words.push_back(cleaned.substr(0, length));
    cleaned.remove_prefix(std::min(length + 1, cleaned.size()));
  }
  std::ranges::sort(words);
  return words;
}

}  // namespace

std::u32string clean(std::u32string_view lowered, CharacterClasses classes) {
  // Punctuation is deleted first: "th-e" becomes a dropped word, and "in-our" does not.
  std::u32string text;
  text.reserve(lowered.size());
  std::ranges::copy_if(lowered, std::back_inserter(text), [](char32_t c) { return !is_punctuation(c); });

  std::u32string cleaned;
  cleaned.reserve(text.size());
  bool gap = false;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = begin + 1;
    if (classes.is_space(text[begin])) {
      gap = true;
      continue;
    }
    if (classes.is_word(text[begin])) {
      while (end < text.size() && classes.is_word(text[end])) {
        ++end;
      }
    }
    const std::u32string_view piece = std::u32string_view(text).substr(begin, end - begin);
    if (std::ranges::find(kDroppedWords, piece) != kDroppedWords.end()) {
      gap = true;
      continue;
    }
    if (gap && !cleaned.empty()) {
      cleaned += U' ';
    }
    gap = false;
    cleaned += piece;
  }
  return cleaned;
}

bool exact_match(std::u32string_view a, std::u32string_view b, CharacterClasses classes) {
  return clean(a, classes) == clean(b, classes);
}

double token_f1(std::u32string_view prediction, std::u32string_view reference, CharacterClasses classes) {
  const std::u32string cleaned_prediction = clean(prediction, classes);
  const std::u32string cleaned_reference = clean(reference, classes);
  const auto predicted = bag_of_words(cleaned_prediction);
  const auto expected = bag_of_words(cleaned_reference);

  std::vector<std::u32string_view> common;
  std::ranges::set_intersection(predicted, expected, std::back_inserter(common));
  if (common.empty()) {
    return 0.0;
  }
  const double precision = static_cast<double>(common.size()) / static_cast<double>(predicted.size());
  const double recall = static_cast<double>(common.size()) / static_cast<double>(expected.size());
  return 2.0 * precision * recall / (precision + recall);
}

}  // namespace groundwire
