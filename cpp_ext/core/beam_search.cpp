#include "core/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "core/errors.hpp"

namespace groundwire {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kMostBeams = std::int64_t{1} << 20;

void check_options(const BeamOptions& options) {
  const auto require_token = [&](const char* name, std::int64_t token) {
    require(0 <= token && token < options.vocabulary, name, " is ", token, ", allowed are 0 to ",
            options.vocabulary - 1);
  };
  require(1 <= options.vocabulary && options.vocabulary <= std::numeric_limits<std::int32_t>::max(), "vocabulary is ",
          options.vocabulary, ", allowed are 1 to ", std::numeric_limits<std::int32_t>::max());
  require(1 <= options.num_beams && options.num_beams <= options.vocabulary, "num_beams is ", options.num_beams,
          ", allowed are 1 to the vocabulary of ", options.vocabulary);
  require(1 <= options.sources && options.sources <= kMostBeams / options.num_beams, "sources is ", options.sources,
          ", allowed are 1 to ", kMostBeams / options.num_beams, " at ", options.num_beams, " beams");
  require(1 <= options.num_return_sequences && options.num_return_sequences <= options.num_beams,
          "num_return_sequences is ", options.num_return_sequences, ", allowed are 1 to num_beams, which is ",
          options.num_beams);
  require_token("start", options.start);
  for (const std::int64_t token : options.eos) {
    require_token("eos", token);
  }
  std::vector<std::int64_t> eos = options.eos;
  std::ranges::sort(eos);
  require(std::ranges::adjacent_find(eos) == eos.end(), "eos names a token twice");
  require(options.max_length >= 2, "max_length is ", options.max_length,
          ", it must be at least 2: the start token and one more");
  require(options.min_length >= 0, "min_length is ", options.min_length, ", it must be at least 0");
  require(options.no_repeat_ngram_size >= 0, "no_repeat_ngram_size is ", options.no_repeat_ngram_size,
          ", it must be at least 0");
  require(std::isfinite(options.length_penalty), "length_penalty is ", options.length_penalty, ", it must be finite");
}

}  // namespace

BeamSearch::BeamSearch(BeamOptions options) : options_(std::move(options)) {
  check_options(options_);
  beams_ = static_cast<std::size_t>(options_.num_beams);
  // Enough that num_beams continuations remain even if all the others end.
  kept_ = std::max<std::size_t>(2, 1 + options_.eos.size()) * beams_;

  const std::vector<std::int64_t> tokens = {options_.start};
  const Beam only{tokens, banned_after(tokens), 0.0F, 0};
  sources_.assign(static_cast<std::size_t>(options_.sources), Source{{only}, {}});
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    open_.push_back({i, i});
  }
  count_wanted();
}

std::vector<std::int64_t> BeamSearch::tokens() const {
  std::vector<std::int64_t> tokens;
  for (const OpenSource& open : open_) {
    std::ranges::transform(sources_[open.index].running, std::back_inserter(tokens),
                           [](const Beam& beam) { return beam.tokens.back(); });
  }
  return tokens;
}

std::vector<std::int64_t> BeamSearch::parents() const {
  std::vector<std::int64_t> parents;
  for (const OpenSource& open : open_) {
    std::ranges::transform(sources_[open.index].running, std::back_inserter(parents), &Beam::parent);
  }
  return parents;
}

std::vector<std::int64_t> BeamSearch::open() const {
  std::vector<std::int64_t> previous;
  std::ranges::transform(open_, std::back_inserter(previous),
                         [](const OpenSource& open) { return static_cast<std::int64_t>(open.previous_position); });
  return previous;
}

bool BeamSearch::advance(const Candidates& candidates) {
  check(candidates);
  std::vector<OpenSource> still_open;
  for (std::size_t position = 0; position < open_.size(); ++position) {
    Source& source = sources_[open_[position].index];
    if (step(source, best_continuations(source, candidates, position))) {
      still_open.push_back({open_[position].index, position});
    }
  }
  open_ = std::move(still_open);
  width_ = beams_;
  ++length_;
  count_wanted();
  return open_.empty();
}

std::vector<std::vector<Hypothesis>> BeamSearch::results() const {
  std::vector<std::vector<Hypothesis>> results;
  for (const Source& source : sources_) {
    const auto count = std::min(static_cast<std::size_t>(options_.num_return_sequences), source.finished.size());
    results.emplace_back(source.finished.begin(), source.finished.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return results;
}

void BeamSearch::check(const Candidates& candidates) const {
  require(!open_.empty(), "every source is closed, there is no step left to take");
  require(candidates.sources == open_.size() && candidates.beams == width_, "candidates are for ", candidates.sources,
          " sources of ", candidates.beams, " beams, expected are ", open_.size(), " sources of ", width_, " beams");
  require(static_cast<std::uint64_t>(wanted_) <= candidates.count &&
              candidates.count <= static_cast<std::uint64_t>(options_.vocabulary),
          candidates.count, " candidates per beam, allowed are ", wanted_, " (wanted) to ", options_.vocabulary,
          " (the vocabulary)");
  // At most 2^20 beams of 2^31 candidates, so the product does not overflow.
  const std::uint64_t values = std::uint64_t{candidates.sources} * candidates.beams * candidates.count;
  require(candidates.scores.size() == values && candidates.tokens.size() == values, "candidates hold ",
          candidates.scores.size(), " scores and ", candidates.tokens.size(), " tokens, expected are ", values,
          " of each");
  for (const std::int64_t token : candidates.tokens) {
    require(0 <= token && token < options_.vocabulary, "candidates hold token ", token, ", allowed are 0 to ",
            options_.vocabulary - 1);
  }
}

/// The best `kept_` continuations over all beams of a source; of equal scores the earlier beam, then the lower token
/// comes first.
std::vector<BeamSearch::Continuation> BeamSearch::best_continuations(const Source& source, const Candidates& candidates,
                                                                     std::size_t position) const {
  std::vector<Continuation> continuations;
  for (std::size_t b = 0; b < source.running.size(); ++b) {
    const Beam& beam = source.running[b];
    const std::size_t offset = (position * candidates.beams + b) * candidates.count;
    for (std::size_t i = offset; i < offset + candidates.count; ++i) {
      const float score = beam.score + candidates.scores[i];
      const std::int64_t token = candidates.tokens[i];
      // NaN is not above -inf either.
      if (score > kImpossible && !std::ranges::binary_search(beam.banned, token)) {
        continuations.push_back({score, b, token});
      }
    }
  }
  const std::size_t kept = std::min(kept_, continuations.size());
  std::ranges::partial_sort(continuations, continuations.begin() + static_cast<std::ptrdiff_t>(kept), {},
                            [](const Continuation& c) { return std::tuple(-c.score, c.beam, c.token); });
  continuations.resize(kept);
  return continuations;
}

/// Replaces the running beams of a source, adds to its finished hypotheses, and returns whether the source stays open.
bool BeamSearch::step(Source& source, const std::vector<Continuation>& continuations) const {
  const bool last = length_ + 1 >= static_cast<std::size_t>(options_.max_length);
  std::vector<Beam> running;
  for (std::size_t rank = 0; rank < continuations.size(); ++rank) {
    const auto& [score, parent, token] = continuations[rank];
    std::vector<std::int64_t> tokens = source.running[parent].tokens;
    tokens.push_back(token);
    if (!last && !ends(token)) {
      if (running.size() < beams_) {
        std::vector<std::int64_t> banned = banned_after(tokens);
        running.push_back({std::move(tokens), std::move(banned), score, static_cast<std::int64_t>(parent)});
      }
    } else if (rank < beams_) {
      // Only the num_beams best continuations of a step may finish: an end token that ranks lower is discarded.
      finish(source, {{tokens.begin() + 1, tokens.end()}, penalized(score)});
    }
  }
  source.running = std::move(running);
  if (source.running.empty() || !can_improve(source)) {
    return false;
  }
  // The model's batch is rectangular: beams without a continuation carry the start token and a score of -inf.
  source.running.resize(beams_, {{options_.start}, {}, kImpossible, 0});
  return true;
}

void BeamSearch::finish(Source& source, Hypothesis hypothesis) const {
  const auto position =
      std::ranges::upper_bound(source.finished, hypothesis.score, std::ranges::greater{}, &Hypothesis::score);
  source.finished.insert(position, std::move(hypothesis));
  if (source.finished.size() > beams_) {
    source.finished.pop_back();
  }
}

bool BeamSearch::can_improve(const Source& source) const {
  if (source.finished.size() < beams_) {
    return true;
  }
  // As in transformers, the best running beam is scored as if it ended here: a heuristic, not a bound.
  return !options_.early_stopping && penalized(source.running.front().score) > source.finished.back().score;
}

/// The tokens that may not follow: those that would repeat an n-gram, and the end tokens before min_length.
std::vector<std::int64_t> BeamSearch::banned_after(const std::vector<std::int64_t>& tokens) const {
  std::vector<std::int64_t> banned;
  if (tokens.size() < static_cast<std::size_t>(options_.min_length)) {
    banned = options_.eos;
  }
  const auto n = static_cast<std::size_t>(options_.no_repeat_ngram_size);
  if (n > 0 && tokens.size() >= n) {
    const auto prefix = std::span(tokens).last(n - 1);
    for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
      if (std::ranges::equal(std::span(tokens).subspan(i, n - 1), prefix)) {
        banned.push_back(tokens[i + n - 1]);
      }
    }
  }
  std::ranges::sort(banned);
  const auto repeats = std::ranges::unique(banned);
  banned.erase(repeats.begin(), repeats.end());
  return banned;
}

bool BeamSearch::ends(std::int64_t token) const {
  return std::ranges::find(options_.eos, token) != options_.eos.end();
}

/// The score of a hypothesis that the current step made `length_` tokens long, start token left out.
float BeamSearch::penalized(float score) const {
  const float result = score / static_cast<float>(std::pow(static_cast<double>(length_), options_.length_penalty));
  // An extreme penalty can make 0 / 0, which must not take part in comparisons.
  return std::isnan(result) ? kImpossible : result;
}

void BeamSearch::count_wanted() {
  std::size_t most_banned = 0;
  for (const OpenSource& open : open_) {
    for (const Beam& beam : sources_[open.index].running) {
      most_banned = std::max(most_banned, beam.banned.size());
    }
  }
  wanted_ = std::min(options_.vocabulary, static_cast<std::int64_t>(kept_ + most_banned));
}

}  // namespace groundwire
