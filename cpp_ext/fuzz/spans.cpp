// Answer spans against a reference implementation that lists every span and sorts.

#include "core/spans.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "fuzz/input.hpp"

namespace groundwire::fuzz {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

struct Span {
  std::int64_t start;
  std::int64_t end;
  float score;
};

struct Logits {
  std::size_t rows;
  std::size_t cols;
  std::vector<float> start;
  std::vector<float> end;

  explicit Logits(Input& input)
      : rows(static_cast<std::size_t>(input.between(0, 3))), cols(static_cast<std::size_t>(input.between(1, 24))) {
    for (std::size_t i = 0; i < rows * cols; ++i) {
      start.push_back(input.logit());
      end.push_back(input.logit());
    }
  }

  Matrix<const float> starts() const { return {start.data(), rows, cols}; }
  Matrix<const float> ends() const { return {end.data(), rows, cols}; }

  float start_at(std::size_t b, std::int64_t i) const {
    return nan_to_lowest(start.at(b * cols + static_cast<std::size_t>(i)));
  }
  float end_at(std::size_t b, std::int64_t i) const {
    return nan_to_lowest(end.at(b * cols + static_cast<std::size_t>(i)));
  }
  float score(std::size_t b, std::int64_t s, std::int64_t e) const {
    return nan_to_lowest(start_at(b, s) + end_at(b, e));
  }

  static float nan_to_lowest(float value) { return std::isnan(value) ? kImpossible : value; }
};

std::vector<Span> slow_best(const Logits& logits, std::size_t b, std::int64_t first, std::int64_t last,
                            std::int64_t max_tokens, std::size_t n) {
  std::vector<Span> spans;
  for (std::int64_t s = first; s <= last; ++s) {
    for (std::int64_t e = s; e <= last; ++e) {
      if (e - s < max_tokens && logits.score(b, s, e) > kImpossible) {
        spans.push_back({s, e, logits.score(b, s, e)});
      }
    }
  }
  std::ranges::stable_sort(spans, std::ranges::greater{}, &Span::score);
  spans.resize(n, {-1, -1, kImpossible});
  return spans;
}

void check_best(Input& input, const Logits& logits) {
  const auto cols = static_cast<std::int64_t>(logits.cols);
  std::vector<std::int64_t> first(logits.rows);
  std::vector<std::int64_t> last(logits.rows);
  bool allowed = true;
  for (std::size_t b = 0; b < logits.rows; ++b) {
    first[b] = input.between(input.one_in(30) ? -1 : 0, cols - 1);
    last[b] = input.one_in(30) ? INT64_MAX : input.between(0, cols - 1);
    allowed = allowed && first[b] >= 0 && last[b] < cols;
  }
  const std::int64_t max_tokens = input.one_in(10) ? INT64_MAX : input.between(input.one_in(20) ? 0 : 1, cols + 2);
  const std::int64_t n = input.one_in(30) ? INT64_MAX : input.between(input.one_in(20) ? 0 : 1, 8);
  allowed = allowed && max_tokens >= 1 && 1 <= n && n <= 8;

  Spans fast;
  const bool refused = refuses([&] { fast = best_spans(logits.starts(), logits.ends(), first, last, max_tokens, n); });
  expect(refused != allowed, "best_spans refuses what is not allowed, and nothing else");
  for (std::size_t b = 0; allowed && b < logits.rows; ++b) {
    const auto per_row = static_cast<std::size_t>(n);
    const std::vector<Span> slow = slow_best(logits, b, first[b], last[b], max_tokens, per_row);
    for (std::size_t i = 0; i < per_row; ++i) {
      expect(fast.starts.at(b * per_row + i) == slow[i].start && fast.ends.at(b * per_row + i) == slow[i].end &&
                 fast.scores.at(b * per_row + i) == slow[i].score,
             "best_spans equals its reference implementation");
    }
    expect(fast.null_scores.at(b) == logits.score(b, 0, 0), "the null score is that of position 0");
  }
}

void check_argmax(Input& input, const Logits& logits) {
  const auto cols = static_cast<std::int64_t>(logits.cols);
  std::vector<std::int64_t> lengths(logits.rows);
  bool allowed = true;
  for (std::int64_t& length : lengths) {
    length = input.one_in(30) ? INT64_MIN : input.between(1, cols + (input.one_in(30) ? 1 : 0));
    allowed = allowed && 1 <= length && length <= cols;
  }
  Spans fast;
  const bool refused = refuses([&] { fast = argmax_spans(logits.starts(), logits.ends(), lengths); });
  expect(refused != allowed, "argmax_spans refuses what is not allowed, and nothing else");
  for (std::size_t b = 0; allowed && b < logits.rows; ++b) {
    const std::int64_t s = fast.starts.at(b);
    const std::int64_t e = fast.ends.at(b);
    for (std::int64_t i = 0; i < lengths[b]; ++i) {
      expect(i < s ? logits.start_at(b, i) < logits.start_at(b, s) : logits.start_at(b, i) <= logits.start_at(b, s),
             "the start is the first maximum");
      expect(i < e ? logits.end_at(b, i) < logits.end_at(b, e) : logits.end_at(b, i) <= logits.end_at(b, e),
             "the end is the first maximum");
    }
    expect(s < lengths[b] && e < lengths[b], "the span lies within the row");
    expect(fast.scores.at(b) == logits.score(b, s, e), "the score is the sum of both logits");
    expect(fast.null_scores.at(b) == logits.score(b, 0, 0), "the null score is that of position 0");
  }
}

}  // namespace
}  // namespace groundwire::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  groundwire::fuzz::Input input(data, size);
  const groundwire::fuzz::Logits logits(input);
  groundwire::fuzz::check_best(input, logits);
  groundwire::fuzz::check_argmax(input, logits);
  return 0;
}
