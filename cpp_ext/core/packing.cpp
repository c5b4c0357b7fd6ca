#include "core/packing.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/errors.hpp"

namespace groundwire {
namespace {

/// Values of one batch: 1 GiB of ids, and the mask. More is a mistake that could take the machine's memory.
constexpr std::size_t kMostValues = std::size_t{1} << 27;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

struct Extent {
  std::size_t begin;
  std::size_t size;
};

/// The extent of row `row` in a ragged table of `total` values, checked against the table and the batch width.
Extent extent(std::span<const std::int64_t> offsets, std::int64_t row, std::size_t total, std::size_t width) {
  const std::size_t described = offsets.empty() ? 0 : offsets.size() - 1;
  require(row >= 0 && static_cast<std::size_t>(row) < described, "rows names row ", row, ", but offsets describe ",
          described, " rows");
  const std::int64_t begin = offsets[static_cast<std::size_t>(row)];
  const std::int64_t end = offsets[static_cast<std::size_t>(row) + 1];
  require(0 <= begin && begin <= end && static_cast<std::uint64_t>(end) <= total, "offsets put row ", row, " at ",
          begin, " to ", end, ", which is not a part of the ", total, " values of flat");
  const auto size = static_cast<std::size_t>(end - begin);
  require(size <= width, "row ", row, " has ", size, " values, more than the width ", width);
  return {static_cast<std::size_t>(begin), size};
}

}  // namespace

std::int64_t bucket_width(std::int64_t length) {
  require(0 <= length && length <= kMaxLength, "length is ", length, ", allowed are 0 to ", kMaxLength);
  if (length <= 64) {
    return std::max<std::int64_t>(8, rounded_up(length, 8));
  }
  return rounded_up(length, length <= 256 ? 16 : 32);
}

Batches plan_batches(std::span<const std::int64_t> lengths, std::int64_t max_tokens, std::int64_t max_rows) {
  require(max_tokens >= 1, "max_tokens is ", max_tokens, ", it must be at least 1");
  require(max_rows >= 1, "max_rows is ", max_rows, ", it must be at least 1");

  std::vector<std::int64_t> width_of(lengths.size());
  std::ranges::transform(lengths, width_of.begin(), bucket_width);
  const auto width = [&](std::int64_t row) { return width_of[static_cast<std::size_t>(row)]; };

  Batches batches;
  batches.order.resize(lengths.size());
  std::iota(batches.order.begin(), batches.order.end(), std::int64_t{0});
  std::ranges::stable_sort(batches.order, {}, width);

  std::int64_t rows_left = 0;
  for (std::size_t i = 0; i < batches.order.size(); ++i) {
    const std::int64_t row_width = width(batches.order[i]);
    if (rows_left == 0 || row_width != batches.widths.back()) {
      batches.bounds.push_back(static_cast<std::int64_t>(i));
      batches.widths.push_back(row_width);
      rows_left = std::min(max_rows, std::max<std::int64_t>(1, max_tokens / row_width));
    }
    --rows_left;
  }
  batches.bounds.push_back(static_cast<std::int64_t>(batches.order.size()));
  return batches;
}

PaddedRows pad_rows(std::span<const std::int64_t> flat, std::span<const std::int64_t> offsets,
                    std::span<const std::int64_t> rows, std::int64_t width, std::int64_t fill) {
  require(1 <= width && width <= kMaxLength, "width is ", width, ", allowed are 1 to ", kMaxLength);
  const auto columns = static_cast<std::size_t>(width);
  require(rows.size() <= kMostValues / columns, rows.size(), " rows of width ", width, ", allowed are up to ",
          kMostValues, " values in a batch");

  PaddedRows padded{std::vector<std::int64_t>(rows.size() * columns, fill),
                    std::vector<std::int64_t>(rows.size() * columns, 0)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [begin, size] = extent(offsets, rows[i], flat.size(), columns);
    const auto first = static_cast<std::ptrdiff_t>(i * columns);
    std::ranges::copy(flat.subspan(begin, size), padded.ids.begin() + first);
    std::fill_n(padded.mask.begin() + first, size, std::int64_t{1});
  }
  return padded;
}

}  // namespace groundwire
