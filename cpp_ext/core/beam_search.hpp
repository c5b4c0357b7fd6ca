// The bookkeeping of beam search, as in GenerationMixin._beam_search of transformers 4.57.
//
// The caller's model scores the next tokens of every beam of every open source; this class keeps the running beams and
// the finished hypotheses. Sources do not influence each other. A source is closed as soon as no later step can change
// its result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace groundwire {

/// The settings of a search. The constructor of BeamSearch checks the stated limits.
struct BeamOptions {
  std::int64_t sources;               // at least 1; sources * num_beams at most 2^20
  std::int64_t num_beams;             // 1 to vocabulary; 1 is greedy search
  std::int64_t num_return_sequences;  // hypotheses per source, 1 to num_beams
  std::int64_t start;                 // the token every hypothesis begins with
  std::vector<std::int64_t> eos;      // the tokens that end a hypothesis, without repeats; empty: only max_length does
  std::int64_t vocabulary;            // 1 to 2^31 - 1; tokens are 0 to vocabulary - 1
  std::int64_t max_length;            // tokens of a hypothesis, start token included (max_new_tokens + 1), at least 2
  std::int64_t min_length;            // no end before this many tokens, start token included; 0: anywhere
  std::int64_t no_repeat_ngram_size;  // no n-gram of this length twice in a hypothesis, start token included; 0: off
  double length_penalty;              // a finished sum of log-probabilities is divided by (tokens after start) ** this
  bool early_stopping;                // true: stop at num_beams finished hypotheses; false: when none can improve them
};

/// The model's output for one step: log-probabilities and their tokens, each [sources, beams, count].
struct Candidates {
  std::span<const float> scores;
  std::span<const std::int64_t> tokens;
  std::size_t sources;
  std::size_t beams;
  std::size_t count;
};

/// A finished sequence: `tokens` without the start token and with the end token; `score` is transformers'
/// sequences_scores.
struct Hypothesis {
  std::vector<std::int64_t> tokens;
  float score;
};

class BeamSearch {
 public:
  explicit BeamSearch(BeamOptions options);

  /// How many candidates per beam, best first, make the next step exact: as many as transformers considers, plus those
  /// that no_repeat_ngram_size and min_length may rule out.
  std::int64_t wanted() const { return wanted_; }

  std::size_t open_sources() const { return open_.size(); }
  /// 1 before the first step, when all beams of a source would be equal; num_beams afterwards.
  std::size_t open_beams() const { return width_; }

  /// [open_sources, open_beams] The last token of each beam.
  std::vector<std::int64_t> tokens() const;
  /// [open_sources, open_beams] The beam of the previous step that each continues.
  std::vector<std::int64_t> parents() const;
  /// [open_sources] The position of each open source among the open sources of the previous step.
  std::vector<std::int64_t> open() const;

  /// Takes one step and returns whether every source is closed. Requires at least wanted() candidates per beam. A score
  /// of NaN or -inf rules a token out. A rejected step changes nothing.
  bool advance(const Candidates& candidates);

  /// The best num_return_sequences finished hypotheses of each source so far, best first. A closed source has fewer
  /// only if banned or ruled-out tokens left it no continuation.
  std::vector<std::vector<Hypothesis>> results() const;

 private:
  struct Beam {
    std::vector<std::int64_t> tokens;  // from the start token on
    std::vector<std::int64_t> banned;  // as next token; sorted
    float score;                       // sum of log-probabilities; -inf marks a beam without a continuation
    std::int64_t parent;
  };
  struct Source {
    std::vector<Beam> running;         // best first
    std::vector<Hypothesis> finished;  // best first
  };
  struct OpenSource {
    std::size_t index;
    std::size_t previous_position;
  };
  struct Continuation {
    float score;
    std::size_t beam;
    std::int64_t token;
  };

  void check(const Candidates& candidates) const;
  std::vector<Continuation> best_continuations(const Source& source, const Candidates& candidates,
                                               std::size_t position) const;
  bool step(Source& source, const std::vector<Continuation>& continuations) const;
  void finish(Source& source, Hypothesis hypothesis) const;
  bool can_improve(const Source& source) const;
  std::vector<std::int64_t> banned_after(const std::vector<std::int64_t>& tokens) const;
  bool ends(std::int64_t token) const;
  float penalized(float score) const;
  void count_wanted();

  BeamOptions options_;
  std::size_t beams_;
  std::size_t kept_;        // continuations per source that a step considers
  std::size_t length_ = 1;  // tokens of every running beam, start token included
  std::size_t width_ = 1;
  std::int64_t wanted_ = 0;
  std::vector<Source> sources_;
  std::vector<OpenSource> open_;
};

}  // namespace groundwire
