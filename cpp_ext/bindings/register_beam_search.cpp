#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "core/beam_search.hpp"

namespace groundwire::bindings {
namespace {

using namespace nb::literals;

/// A search guarded by a mutex: without the GIL two threads could enter it at once.
class SharedSearch {
 public:
  explicit SharedSearch(BeamOptions options) : search_(std::move(options)) {}

  template <class Work>
  auto with(Work&& work) {
    nb::gil_scoped_release release;
    const std::scoped_lock turn(mutex_);
    return work(search_);
  }

 private:
  BeamSearch search_;
  std::mutex mutex_;
};

struct Table {
  std::vector<std::int64_t> values;
  std::size_t rows;
  std::size_t cols;
};

nb::object to_numpy(Table&& table) {
  return bindings::to_numpy(std::move(table.values), table.rows, table.cols);
}

bool advance(SharedSearch& shared, const Array& scores, const Array& candidates) {
  const float* score_data = checked_data<float>(scores, "scores", 3);
  const std::int64_t* token_data = checked_data<std::int64_t>(candidates, "candidates", 3);
  if (!same_shape(scores, candidates)) [[unlikely]] {
    reject("scores has shape ", shape_name(scores), " and candidates ", shape_name(candidates), ", they must be equal");
  }
  const Candidates step{.scores = {score_data, scores.size()},
                        .tokens = {token_data, candidates.size()},
                        .sources = scores.shape(0),
                        .beams = scores.shape(1),
                        .count = scores.shape(2)};
  return shared.with([&](BeamSearch& search) { return search.advance(step); });
}

std::vector<std::vector<std::pair<std::vector<std::int64_t>, float>>> results(SharedSearch& shared) {
  const auto finished = shared.with([](BeamSearch& search) { return search.results(); });
  std::vector<std::vector<std::pair<std::vector<std::int64_t>, float>>> converted;
  for (const std::vector<Hypothesis>& hypotheses : finished) {
    auto& source = converted.emplace_back();
    for (const Hypothesis& hypothesis : hypotheses) {
      source.emplace_back(hypothesis.tokens, hypothesis.score);
    }
  }
  return converted;
}

}  // namespace

void register_beam_search(nb::module_& module) {
  nb::class_<SharedSearch>(module, "BeamSearch", "The bookkeeping of transformers' beam search over several sources.")
      .def(
          "__init__",
          [](SharedSearch* self, std::int64_t sources, std::int64_t num_beams, std::int64_t num_return_sequences,
             std::int64_t start, std::vector<std::int64_t> eos, std::int64_t vocabulary, std::int64_t max_length,
             std::int64_t min_length, std::int64_t no_repeat_ngram_size, double length_penalty, bool early_stopping) {
            new (self) SharedSearch(BeamOptions{.sources = sources,
                                                .num_beams = num_beams,
                                                .num_return_sequences = num_return_sequences,
                                                .start = start,
                                                .eos = std::move(eos),
                                                .vocabulary = vocabulary,
                                                .max_length = max_length,
                                                .min_length = min_length,
                                                .no_repeat_ngram_size = no_repeat_ngram_size,
                                                .length_penalty = length_penalty,
                                                .early_stopping = early_stopping});
          },
          "sources"_a, "num_beams"_a, "num_return_sequences"_a, "start"_a, "eos"_a, "vocabulary"_a, "max_length"_a,
          "min_length"_a, "no_repeat_ngram_size"_a, "length_penalty"_a, "early_stopping"_a)
      .def(
          "wanted",
          [](SharedSearch& shared) { return shared.with([](BeamSearch& search) { return search.wanted(); }); },
          "How many candidates per beam the next step needs.")
      .def(
          "tokens",
          [](SharedSearch& shared) {
            return to_numpy(shared.with(
                [](BeamSearch& search) { return Table{search.tokens(), search.open_sources(), search.open_beams()}; }));
          },
          "[open sources, beams] The last token of every beam.")
      .def(
          "parents",
          [](SharedSearch& shared) {
            return to_numpy(shared.with([](BeamSearch& search) {
              return Table{search.parents(), search.open_sources(), search.open_beams()};
            }));
          },
          "[open sources, beams] The beam of the previous step that each beam continues.")
      .def(
          "open",
          [](SharedSearch& shared) {
            std::vector<std::int64_t> positions = shared.with([](BeamSearch& search) { return search.open(); });
            const std::size_t count = positions.size();
            return bindings::to_numpy(std::move(positions), count);
          },
          "[open sources] The position of each among the open sources of the previous step.")
      .def("advance", &advance, nb::arg("scores").noconvert(), nb::arg("candidates").noconvert(),
           "Take one step; True when every source is closed.")
      .def("results", &results, "Per source, best first: (tokens after the start token, score).");
}

}  // namespace groundwire::bindings
