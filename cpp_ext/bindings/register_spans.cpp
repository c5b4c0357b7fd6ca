#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "core/spans.hpp"

namespace groundwire::bindings {

using namespace nb::literals;

void register_spans(nb::module_& module) {
  module.def(
      "argmax_spans",
      [](const Array& start, const Array& end, const Array& lengths) {
        const auto starts = as_matrix<float>(start, "start");
        const auto ends = as_matrix<float>(end, "end");
        const auto limits = as_vector<std::int64_t>(lengths, "lengths");
        Spans spans = unlocked([&] { return argmax_spans(starts, ends, limits); });
        return nb::make_tuple(
            to_numpy(std::move(spans.starts), starts.rows), to_numpy(std::move(spans.ends), starts.rows),
            to_numpy(std::move(spans.scores), starts.rows), to_numpy(std::move(spans.null_scores), starts.rows));
      },
      nb::arg("start").noconvert(), nb::arg("end").noconvert(), nb::arg("lengths").noconvert(),
      "The independent argmax of start and end logits per row: (starts, ends, scores, null_scores).");

  module.def(
      "best_spans",
      [](const Array& start, const Array& end, const Array& first, const Array& last, std::int64_t max_tokens,
         std::int64_t n) {
        const auto starts = as_matrix<float>(start, "start");
        const auto ends = as_matrix<float>(end, "end");
        const auto lower = as_vector<std::int64_t>(first, "first");
        const auto upper = as_vector<std::int64_t>(last, "last");
        Spans spans = unlocked([&] { return best_spans(starts, ends, lower, upper, max_tokens, n); });
        return nb::make_tuple(
            to_numpy(std::move(spans.starts), starts.rows, n), to_numpy(std::move(spans.ends), starts.rows, n),
            to_numpy(std::move(spans.scores), starts.rows, n), to_numpy(std::move(spans.null_scores), starts.rows));
      },
      nb::arg("start").noconvert(), nb::arg("end").noconvert(), nb::arg("first").noconvert(),
      nb::arg("last").noconvert(), "max_tokens"_a, "n"_a,
      "The n best joint spans per row: (starts, ends, scores, null_scores).");
}

}  // namespace groundwire::bindings
