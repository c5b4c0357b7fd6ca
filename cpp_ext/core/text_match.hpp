// Compares a predicted answer with a reference answer: normalized text, exact match and token F1.
//
// Lower-casing and character classes depend on the Unicode version of the caller's interpreter, so the caller
// lower-cases the texts and passes the classes. Every text here is lower-cased code points, lone surrogates included.
#pragma once

#include <string>
#include <string_view>

namespace groundwire {

/// Which code points match `\w` and `\s` in a regular expression over str. Called without the GIL.
struct CharacterClasses {
  bool (*is_word)(char32_t);
  bool (*is_space)(char32_t);
};

/// Deletes ASCII punctuation, replaces the words a, an, the, in, our by a space, then squeezes and strips whitespace.
std::u32string clean(std::u32string_view lowered, CharacterClasses classes);

/// Whether two texts are equal once cleaned.
bool exact_match(std::u32string_view a, std::u32string_view b, CharacterClasses classes);

/// Bag-of-words F1 of the cleaned texts, 0 to 1; 0 without a common token.
double token_f1(std::u32string_view prediction, std::u32string_view reference, CharacterClasses classes);

}  // namespace groundwire
