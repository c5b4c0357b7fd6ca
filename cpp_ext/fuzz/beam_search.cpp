// Beam search against a reference implementation that takes one source at a time and scores the whole vocabulary.

#include "core/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "fuzz/input.hpp"

namespace groundwire::fuzz {
namespace {

using Tokens = std::vector<std::int64_t>;

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// A made-up language model: log-probabilities that depend on the source, the whole prefix and the token.
struct Model {
  std::uint64_t seed;
  bool coarse;  // so coarse that sums tie

  float operator()(std::size_t source, const Tokens& prefix, std::int64_t token) const {
    std::uint64_t hash = seed + source;
    const auto mix = [&](std::int64_t value) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29U;
    };
    std::ranges::for_each(prefix, mix);
    mix(token);
    const auto draw = hash % 4096;
    if (draw < 64) {
      return draw < 16 ? std::numeric_limits<float>::quiet_NaN() : kImpossible;
    }
    return coarse ? -static_cast<float>(draw % 8) / 2.0F : -static_cast<float>(draw) / 777.0F;
  }
};

std::set<std::int64_t> slow_banned(const BeamOptions& options, const Tokens& prefix) {
  std::set<std::int64_t> banned;
  if (static_cast<std::int64_t>(prefix.size()) < options.min_length) {
    banned.insert(options.eos.begin(), options.eos.end());
  }
  const auto n = static_cast<std::ptrdiff_t>(options.no_repeat_ngram_size);
  std::set<Tokens> seen;
  for (std::ptrdiff_t i = 0; n > 0 && i + n <= std::ssize(prefix); ++i) {
    seen.insert(Tokens(prefix.begin() + i, prefix.begin() + i + n));
  }
  for (std::int64_t token = 0; n > 0 && n <= std::ssize(prefix) + 1 && token < options.vocabulary; ++token) {
    Tokens ngram(prefix.end() - (n - 1), prefix.end());
    ngram.push_back(token);
    if (seen.contains(ngram)) {
      banned.insert(token);
    }
  }
  return banned;
}

std::vector<Hypothesis> slow_search(const BeamOptions& options, const Model& model, std::size_t source) {
  const auto beams = static_cast<std::size_t>(options.num_beams);
  const std::size_t kept = std::max<std::size_t>(2, options.eos.size() + 1) * beams;
  std::vector<Hypothesis> running = {{{options.start}, 0.0F}};
  std::vector<Hypothesis> finished;
  for (std::int64_t length = 2; length <= options.max_length && !running.empty(); ++length) {
    std::vector<Hypothesis> all;
    for (const Hypothesis& beam : running) {
      const std::set<std::int64_t> banned = slow_banned(options, beam.tokens);
      for (std::int64_t token = 0; token < options.vocabulary; ++token) {
        const float score = beam.score + model(source, beam.tokens, token);
        if (score > kImpossible && !banned.contains(token)) {
          all.push_back({beam.tokens, score});
          all.back().tokens.push_back(token);
        }
      }
    }
    std::ranges::stable_sort(all, std::ranges::greater{}, &Hypothesis::score);
    all.resize(std::min(all.size(), kept));

    const auto divisor = static_cast<float>(std::pow(static_cast<double>(length - 1), options.length_penalty));
    running.clear();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const bool ends = length == options.max_length || std::ranges::count(options.eos, all[rank].tokens.back()) > 0;
      if (!ends) {
        running.push_back(all[rank]);
      } else if (rank < beams) {
        finished.push_back({all[rank].tokens, all[rank].score / divisor});
      }
    }
    running.resize(std::min(running.size(), beams));
    std::ranges::stable_sort(finished, std::ranges::greater{}, &Hypothesis::score);
    finished.resize(std::min(finished.size(), beams));

    const bool full = finished.size() == beams;
    if (full &&
        (options.early_stopping || running.empty() || running.front().score / divisor <= finished.back().score)) {
      break;
    }
  }
  finished.resize(std::min(finished.size(), static_cast<std::size_t>(options.num_return_sequences)));
  return finished;
}

/// The `count` best tokens after every prefix, as a graph with top-k inside returns them.
struct Step {
  std::vector<float> scores;
  Tokens tokens;

  Step(const Model& model, std::int64_t vocabulary, const Tokens& sources,
       const std::vector<std::vector<Tokens>>& prefixes, std::size_t count) {
    for (std::size_t a = 0; a < prefixes.size(); ++a) {
      for (const Tokens& prefix : prefixes[a]) {
        std::vector<std::pair<float, std::int64_t>> row;
        for (std::int64_t token = 0; token < vocabulary; ++token) {
          row.emplace_back(model(static_cast<std::size_t>(sources[a]), prefix, token), token);
        }
        std::ranges::stable_sort(row, [](const auto& left, const auto& right) {
          return (std::isnan(left.first) ? kImpossible : left.first) >
                 (std::isnan(right.first) ? kImpossible : right.first);
        });
        for (std::size_t i = 0; i < count; ++i) {
          scores.push_back(row.at(i).first);
          tokens.push_back(row.at(i).second);
        }
      }
    }
  }
};

/// A step of the wrong shape, with fewer values than its shape says, or with a token outside the vocabulary, is refused
/// and leaves the search as it was.
void check_refusal(Input& input, BeamSearch& search, const BeamOptions& options, Step step, std::size_t count) {
  Candidates wrong{step.scores, step.tokens, search.open_sources(), search.open_beams(), count};
  switch (input.between(0, 5)) {
    case 0:
      step.tokens[static_cast<std::size_t>(input.between(0, std::ssize(step.tokens) - 1))] =
          input.one_in(2) ? -1 : options.vocabulary;
      break;
    case 1:
      wrong.sources += 1;
      break;
    case 2:
      wrong.beams = 0;
      break;
    case 3:
      wrong.scores = wrong.scores.first(wrong.scores.size() - 1);
      break;
    case 4:
      wrong.tokens = wrong.tokens.first(wrong.tokens.size() - 1);
      break;
    default:
      wrong.count = static_cast<std::size_t>(search.wanted()) - 1;
  }
  const Tokens before = search.tokens();
  expect(refuses([&] { search.advance(wrong); }), "a malformed step is refused");
  expect(search.tokens() == before, "a refused step changes nothing");
}

void check_search(Input& input, const BeamOptions& options) {
  const Model model{static_cast<std::uint64_t>(input.between(0, 1 << 30)), input.one_in(2)};
  BeamSearch search(options);
  Tokens sources(static_cast<std::size_t>(options.sources));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i] = static_cast<std::int64_t>(i);
  }
  std::vector<std::vector<Tokens>> prefixes(sources.size(), {{options.start}});

  for (bool closed = false; !closed;) {
    const std::int64_t spare = options.vocabulary - search.wanted();
    const auto count = static_cast<std::size_t>(search.wanted() + (input.one_in(4) ? input.between(0, spare) : 0));
    const Step step(model, options.vocabulary, sources, prefixes, count);
    if (input.one_in(8)) {
      check_refusal(input, search, options, step, count);
    }
    closed = search.advance({step.scores, step.tokens, search.open_sources(), search.open_beams(), count});

    const Tokens open = search.open();
    const Tokens parents = search.parents();
    const Tokens tokens = search.tokens();
    Tokens open_sources;
    std::vector<std::vector<Tokens>> continued;
    for (std::size_t a = 0, i = 0; a < open.size(); ++a) {
      const auto previous = static_cast<std::size_t>(open[a]);
      open_sources.push_back(sources.at(previous));
      std::vector<Tokens>& beams = continued.emplace_back();
      for (std::size_t b = 0; b < search.open_beams(); ++b, ++i) {
        beams.push_back(prefixes.at(previous).at(static_cast<std::size_t>(parents.at(i))));
        beams.back().push_back(tokens.at(i));
      }
    }
    expect(closed == open.empty(), "a search is closed when no source is open");
    sources = std::move(open_sources);
    prefixes = std::move(continued);
  }
  expect(refuses([&] { search.advance({}); }), "a closed search takes no step");

  const std::vector<std::vector<Hypothesis>> results = search.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<Hypothesis> slow = slow_search(options, model, i);
    expect(results[i].size() == slow.size(), "as many hypotheses as the reference implementation finds");
    for (std::size_t h = 0; h < slow.size(); ++h) {
      expect(std::ranges::equal(results[i][h].tokens, Tokens(slow[h].tokens.begin() + 1, slow[h].tokens.end())) &&
                 results[i][h].score == slow[h].score,
             "the hypotheses of the reference implementation");
    }
  }
}

BeamOptions options_from(Input& input) {
  BeamOptions options{};
  options.vocabulary = input.between(input.one_in(30) ? 0 : 2, 12);
  options.sources = input.between(input.one_in(30) ? 0 : 1, 3);
  options.num_beams = input.between(input.one_in(30) ? 0 : 1, 4);
  options.num_return_sequences = input.between(input.one_in(30) ? 0 : 1, std::max<std::int64_t>(1, options.num_beams));
  options.start = input.between(0, 1);
  for (std::int64_t i = input.between(0, 2); i > 0; --i) {
    options.eos.push_back(input.between(input.one_in(30) ? -1 : 0, 4));
  }
  options.max_length = input.between(input.one_in(30) ? 1 : 2, 9);
  options.min_length = input.between(input.one_in(30) ? -1 : 0, input.one_in(3) ? 10 : 1);
  options.no_repeat_ngram_size = input.between(input.one_in(30) ? -1 : 0, 3);
  constexpr double kPenalties[] = {0.0, 0.6, 1.0, 2.0, -1.0, 1e300};
  options.length_penalty = kPenalties[input.between(0, 5)];
  options.early_stopping = input.one_in(2);
  return options;
}

bool allowed(const BeamOptions& options) {
  const auto is_token = [&](std::int64_t token) { return 0 <= token && token < options.vocabulary; };
  const std::set<std::int64_t> distinct(options.eos.begin(), options.eos.end());
  return options.vocabulary >= 1 && options.sources >= 1 && options.num_beams >= 1 &&
         options.num_beams <= options.vocabulary && options.num_return_sequences >= 1 &&
         options.num_return_sequences <= options.num_beams && is_token(options.start) &&
         std::ranges::all_of(options.eos, is_token) && distinct.size() == options.eos.size() &&
         options.max_length >= 2 && options.min_length >= 0 && options.no_repeat_ngram_size >= 0;
}

}  // namespace
}  // namespace groundwire::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace groundwire::fuzz;
  Input input(data, size);
  const groundwire::BeamOptions options = options_from(input);
  expect(refuses([&] { groundwire::BeamSearch search(options); }) != allowed(options),
         "BeamSearch refuses what is not allowed, and nothing else");
  if (allowed(options)) {
    check_search(input, options);
  }
  return 0;
}
