// Finds answer spans from the start and end logits of an extractive QA model.
//
// NaN logits count as -inf, and so does a sum of opposite infinities: a broken logit is never part of the best span.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.hpp"

namespace groundwire {

/// Spans of B rows, `ends` inclusive. `starts`, `ends` and `scores` hold n values per row; `null_scores` holds one.
struct Spans {
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<float> scores;
  std::vector<float> null_scores;
};

/// The start and the end with the largest logit, taken independently, among the first lengths[b] positions of row b;
/// the first of equal maxima. An end may precede its start: the caller decides what that means.
Spans argmax_spans(Matrix<const float> start, Matrix<const float> end, std::span<const std::int64_t> lengths);

/// The n best spans per row by start + end logit, with first[b] <= start <= end <= last[b] and at most `max_tokens`
/// positions; of equal scores the earlier start, then the earlier end comes first. Where fewer than n spans score above
/// -inf, the rest is start = end = -1 and score = -inf. last[b] < first[b] leaves a row without spans.
Spans best_spans(Matrix<const float> start, Matrix<const float> end, std::span<const std::int64_t> first,
                 std::span<const std::int64_t> last, std::int64_t max_tokens, std::int64_t n);

}  // namespace groundwire
