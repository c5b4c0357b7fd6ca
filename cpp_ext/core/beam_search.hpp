// The bookkeeping of beam search, as transformers 4.57 does it in GenerationMixin._beam_search.
//
// A model brings, for every beam of every open source, its best next tokens; this keeps the beams and the finished
// hypotheses. Sources do not influence each other: one is dropped as soon as nothing can change its result any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace groundwire {

/// The limits are those the constructor of BeamSearch checks.
struct BeamOptions {
  std::int64_t sources;           // at least 1; sources * beams at most 2^20
  std::int64_t beams;             // 1 to vocabulary; 1 is greedy search
  std::int64_t returned;          // hypotheses per source, 1 to beams
  std::int64_t start;             // the token every hypothesis begins with
  std::vector<std::int64_t> eos;  // the tokens that end a hypothesis, without repeats; none: only max_length ends one
  std::int64_t vocabulary;        // 1 to 2^31 - 1; tokens are 0 to vocabulary - 1
  std::int64_t max_length;        // tokens including the start token, at least 2
  std::int64_t min_length;        // no end before this many tokens, including the start token; 0: anywhere
  std::int64_t no_repeat_ngram;   // no n-gram of this length twice in a hypothesis, start token included; 0: allowed
  double length_penalty;          // a finished sum of log-probabilities is divided by (tokens after start) ** this
  bool early_stopping;            // true: done with `beams` finished hypotheses; false: when none can improve them
};

/// What the model brings for one step: [sources, beams, count] log-probabilities and their tokens.
struct Candidates {
  std::span<const float> scores;
  std::span<const std::int64_t> tokens;
  std::size_t sources;
  std::size_t beams;
  std::size_t count;
};

/// `tokens` leave out the start token and include the end token; `score` is transformers' sequences_scores.
struct Hypothesis {
  std::vector<std::int64_t> tokens;
  float score;
};

class BeamSearch {
 public:
  explicit BeamSearch(BeamOptions options);

  /// The candidates per beam, best first, that make the next step exact: those transformers looks at, and as many more
  /// as a beam may not use because of no_repeat_ngram and min_length.
  std::int64_t wanted() const { return wanted_; }

  std::size_t open_sources() const { return open_.size(); }
  /// 1 before the first step, when all beams of a source would be equal; `beams` afterwards.
  std::size_t open_beams() const { return width_; }

  /// [open_sources, open_beams] The last token of each beam.
  std::vector<std::int64_t> tokens() const;
  /// [open_sources, open_beams] The beam of the previous step that each continues.
  std::vector<std::int64_t> parents() const;
  /// [open_sources] The place each open source had among the open sources of the previous step.
  std::vector<std::int64_t> open() const;

  /// Takes one step and tells whether every source is closed. At least wanted() candidates per beam must be brought;
  /// a score of NaN or -inf is one the model rules out. A rejected step changes nothing.
  bool advance(const Candidates& candidates);

  /// The best `returned` finished hypotheses of each source so far, best first. A closed source has fewer only if
  /// blocked or ruled-out tokens left it no way to go on.
  std::vector<std::vector<Hypothesis>> results() const;

 private:
  struct Beam {
    std::vector<std::int64_t> tokens;  // from the start token on
    std::vector<std::int64_t> banned;  // as next token; sorted
    float score;                       // sum of log-probabilities; -inf marks a place that no continuation was left for
    std::int64_t parent;
  };
  struct Source {
    std::vector<Beam> running;         // best first
    std::vector<Hypothesis> finished;  // best first
  };
  struct OpenSource {
    std::size_t index;
    std::size_t previous_place;
  };
  struct Continuation {
    float score;
    std::size_t beam;
    std::int64_t token;
  };

  void check(const Candidates& candidates) const;
  std::vector<Continuation> best_continuations(const Source& source, const Candidates& candidates,
                                               std::size_t place) const;
  bool step(Source& source, const std::vector<Continuation>& continuations) const;
  void finish(Source& source, Hypothesis hypothesis) const;
  bool can_improve(const Source& source) const;
  std::vector<std::int64_t> banned_after(const std::vector<std::int64_t>& tokens) const;
  bool ends(std::int64_t token) const;
  float penalized(float score) const;
  void count_wanted();

  BeamOptions options_;
  std::size_t beams_;
  std::size_t kept_;        // continuations per source that a step looks at
  std::size_t length_ = 1;  // tokens of every running beam, start token included
  std::size_t width_ = 1;
  std::int64_t wanted_ = 0;
  std::vector<Source> sources_;
  std::vector<OpenSource> open_;
};

}  // namespace groundwire
