#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "core/packing.hpp"

namespace groundwire::bindings {

using namespace nb::literals;

void register_packing(nb::module_& module) {
  module.def("bucket_width", &bucket_width, "length"_a, "The width a row of `length` tokens is padded to.");

  module.def(
      "plan_batches",
      [](const Array& lengths, std::int64_t max_tokens, std::int64_t max_rows) {
        const auto rows = as_vector<std::int64_t>(lengths, "lengths");
        Batches batches = unlocked([&] { return plan_batches(rows, max_tokens, max_rows); });
        const std::size_t count = batches.widths.size();
        return nb::make_tuple(to_numpy(std::move(batches.order), rows.size()),
                              to_numpy(std::move(batches.bounds), count + 1),
                              to_numpy(std::move(batches.widths), count));
      },
      nb::arg("lengths").noconvert(), "max_tokens"_a, "max_rows"_a,
      "Cut rows into batches of one padded width each: (order, bounds, widths).");

  module.def(
      "pad_rows",
      [](const Array& flat, const Array& offsets, const Array& rows, std::int64_t width, std::int64_t fill) {
        const auto values = as_vector<std::int64_t>(flat, "flat");
        const auto extents = as_vector<std::int64_t>(offsets, "offsets");
        const auto chosen = as_vector<std::int64_t>(rows, "rows");
        PaddedRows padded = unlocked([&] { return pad_rows(values, extents, chosen, width, fill); });
        return nb::make_tuple(to_numpy(std::move(padded.ids), chosen.size(), width),
                              to_numpy(std::move(padded.mask), chosen.size(), width));
      },
      nb::arg("flat").noconvert(), nb::arg("offsets").noconvert(), nb::arg("rows").noconvert(), "width"_a, "fill"_a,
      "Copy rows of a ragged table into one batch: (ids, mask).");
}

}  // namespace groundwire::bindings
