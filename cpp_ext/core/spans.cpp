#include "core/spans.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/errors.hpp"

namespace groundwire {
namespace {

/// Spans over all rows of one call: 320 MiB. A larger n is a mistake, and its table could take the machine's memory.
constexpr std::size_t kMostSpans = std::size_t{1} << 24;

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

float nan_to_lowest(float value) {
  return std::isnan(value) ? kImpossible : value;
}

/// The score of a span. It never decreases when either logit grows, rounding and infinities included: best_spans relies
/// on that.
float span_score(float start, float end) {
  return nan_to_lowest(start + end);
}

void require_same_shape(Matrix<const float> start, Matrix<const float> end) {
  require(start.rows == end.rows && start.cols == end.cols, "start has shape (", start.rows, ", ", start.cols,
          ") and end (", end.rows, ", ", end.cols, "), they must be equal");
  require(start.cols >= 1, "start and end have no positions, they need at least 1");
}

std::size_t first_maximum(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (nan_to_lowest(logits[i]) > nan_to_lowest(logits[best])) {
      best = i;
    }
  }
  return best;
}

std::vector<float> null_scores(Matrix<const float> start, Matrix<const float> end) {
  std::vector<float> scores(start.rows);
  for (std::size_t b = 0; b < start.rows; ++b) {
    scores[b] = span_score(nan_to_lowest(start.row(b)[0]), nan_to_lowest(end.row(b)[0]));
  }
  return scores;
}

/// Fills maxima[i] with the largest of values[i] .. values[i + window - 1], cut off at the end of values.
void sliding_maximum(std::span<const float> values, std::size_t window, std::vector<float>& maxima,
                     std::vector<std::size_t>& falling) {
  maxima.resize(values.size());
  // From right to left, `falling` holds the positions from `oldest` on that can still be a maximum, best first.
  falling.clear();
  std::size_t oldest = 0;
  for (std::size_t i = values.size(); i-- > 0;) {
    while (falling.size() > oldest && values[falling.back()] <= values[i]) {
      falling.pop_back();
    }
    falling.push_back(i);
    while (falling[oldest] - i >= window) {
      ++oldest;
    }
    maxima[i] = values[falling[oldest]];
  }
}

/// The n best spans of one row so far, best first, written straight into that row of the result.
class Ranking {
 public:
  Ranking(std::span<std::int64_t> starts, std::span<std::int64_t> ends, std::span<float> scores)
      : starts_(starts), ends_(ends), scores_(scores) {}

  /// The score that a span must exceed. Spans arrive by start, then end, so an equal score ranks lower.
  float threshold() const { return scores_.back(); }

  void insert(std::size_t start, std::size_t end, float score) {
    std::size_t position = scores_.size() - 1;
    for (; position > 0 && scores_[position - 1] < score; --position) {
      starts_[position] = starts_[position - 1];
      ends_[position] = ends_[position - 1];
      scores_[position] = scores_[position - 1];
    }
    starts_[position] = static_cast<std::int64_t>(start);
    ends_[position] = static_cast<std::int64_t>(end);
    scores_[position] = score;
  }

 private:
  std::span<std::int64_t> starts_;
  std::span<std::int64_t> ends_;
  std::span<float> scores_;
};

}  // namespace

Spans argmax_spans(Matrix<const float> start, Matrix<const float> end, std::span<const std::int64_t> lengths) {
  require_same_shape(start, end);
  require(lengths.size() == start.rows, "lengths has ", lengths.size(), " entries for ", start.rows, " rows");

  Spans spans{std::vector<std::int64_t>(start.rows), std::vector<std::int64_t>(start.rows),
              std::vector<float>(start.rows), null_scores(start, end)};
  for (std::size_t b = 0; b < start.rows; ++b) {
    require(1 <= lengths[b] && static_cast<std::uint64_t>(lengths[b]) <= start.cols, "length of row ", b, " is ",
            lengths[b], ", allowed are 1 to ", start.cols);
    const auto length = static_cast<std::size_t>(lengths[b]);
    const std::size_t s = first_maximum(start.row(b).first(length));
    const std::size_t e = first_maximum(end.row(b).first(length));
    spans.starts[b] = static_cast<std::int64_t>(s);
    spans.ends[b] = static_cast<std::int64_t>(e);
    spans.scores[b] = span_score(nan_to_lowest(start.row(b)[s]), nan_to_lowest(end.row(b)[e]));
  }
  return spans;
}

Spans best_spans(Matrix<const float> start, Matrix<const float> end, std::span<const std::int64_t> first,
                 std::span<const std::int64_t> last, std::int64_t max_tokens, std::int64_t n) {
  require_same_shape(start, end);
  require(first.size() == start.rows && last.size() == start.rows, "first and last have ", first.size(), " and ",
          last.size(), " entries for ", start.rows, " rows");
  require(max_tokens >= 1, "max_tokens is ", max_tokens, ", it must be at least 1");
  const std::size_t most = kMostSpans / std::max<std::size_t>(1, start.rows);
  require(1 <= n && static_cast<std::uint64_t>(n) <= most, "n is ", n, ", allowed are 1 to ", most);

  const auto per_row = static_cast<std::size_t>(n);
  Spans spans{std::vector<std::int64_t>(start.rows * per_row, -1), std::vector<std::int64_t>(start.rows * per_row, -1),
              std::vector<float>(start.rows * per_row, kImpossible), null_scores(start, end)};
  std::vector<float> starts, ends, best_end;
  std::vector<std::size_t> scratch;

  for (std::size_t b = 0; b < start.rows; ++b) {
    require(first[b] >= 0 && last[b] < static_cast<std::int64_t>(start.cols), "row ", b, " allows positions ", first[b],
            " to ", last[b], ", which must lie within 0 to ", start.cols - 1);
    if (last[b] < first[b]) {
      continue;
    }
    const auto offset = static_cast<std::size_t>(first[b]);
    const auto length = static_cast<std::size_t>(last[b] - first[b]) + 1;
    const std::size_t window =
        static_cast<std::uint64_t>(max_tokens) < length ? static_cast<std::size_t>(max_tokens) : length;
    starts.resize(length);
    ends.resize(length);
    std::ranges::transform(start.row(b).subspan(offset, length), starts.begin(), nan_to_lowest);
    std::ranges::transform(end.row(b).subspan(offset, length), ends.begin(), nan_to_lowest);
    sliding_maximum(ends, window, best_end, scratch);

    Ranking ranking(std::span(spans.starts).subspan(b * per_row, per_row),
                    std::span(spans.ends).subspan(b * per_row, per_row),
                    std::span(spans.scores).subspan(b * per_row, per_row));
    for (std::size_t s = 0; s < length; ++s) {
      // Few starts get past this bound, so a row costs about O(T), not O(T * max_tokens).
      if (span_score(starts[s], best_end[s]) <= ranking.threshold()) {
        continue;
      }
      for (std::size_t e = s; e < std::min(length, s + window); ++e) {
        const float score = span_score(starts[s], ends[e]);
        if (score > ranking.threshold()) {
          ranking.insert(offset + s, offset + e, score);
        }
      }
    }
  }
  return spans;
}

}  // namespace groundwire
