// Packing against reference implementations that look up one value at a time.

#include "core/packing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "fuzz/input.hpp"

namespace groundwire::fuzz {
namespace {

using Row = std::vector<std::int64_t>;

std::int64_t slow_width(std::int64_t length) {
  std::int64_t width = 8;
  while (width < length) {
    width += width < 64 ? 8 : width < 256 ? 16 : 32;
  }
  return width;
}

Batches slow_plan(const Row& lengths, std::int64_t max_tokens, std::int64_t max_rows) {
  std::map<std::int64_t, Row> rows_of_width;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    rows_of_width[slow_width(lengths[i])].push_back(static_cast<std::int64_t>(i));
  }
  Batches batches{{}, {0}, {}};
  for (const auto& [width, rows] : rows_of_width) {
    std::int64_t size = 0;
    for (const std::int64_t row : rows) {
      const bool full = size == max_rows || (size + 1) * width > max_tokens;
      if (size > 0 && full) {
        batches.bounds.push_back(static_cast<std::int64_t>(batches.order.size()));
        size = 0;
      }
      if (size == 0) {
        batches.widths.push_back(width);
      }
      batches.order.push_back(row);
      ++size;
    }
    batches.bounds.push_back(static_cast<std::int64_t>(batches.order.size()));
  }
  return batches;
}

void check_plan(Input& input) {
  Row lengths(static_cast<std::size_t>(input.between(0, 40)));
  bool allowed = true;
  for (std::int64_t& length : lengths) {
    length = input.one_in(60) ? input.between(-1, 0) + input.between(0, 1) * INT64_MAX : input.between(0, 700);
    allowed = allowed && 0 <= length && length <= kMaxLength;
  }
  const std::int64_t max_tokens = input.one_in(10) ? INT64_MAX : input.between(0, 3000);
  const std::int64_t max_rows = input.one_in(10) ? INT64_MAX : input.between(0, 9);
  allowed = allowed && max_tokens >= 1 && max_rows >= 1;

  Batches fast;
  const bool refused = refuses([&] { fast = plan_batches(lengths, max_tokens, max_rows); });
  expect(refused != allowed, "plan_batches refuses what is not allowed, and nothing else");
  if (allowed) {
    const Batches slow = slow_plan(lengths, max_tokens, max_rows);
    expect(fast.order == slow.order && fast.bounds == slow.bounds && fast.widths == slow.widths,
           "plan_batches equals its reference implementation");
  }
}

void check_rows(Input& input) {
  Row flat(static_cast<std::size_t>(input.between(0, 60)));
  for (std::int64_t& value : flat) {
    value = input.between(0, 1000);
  }
  const auto total = static_cast<std::int64_t>(flat.size());
  Row offsets(static_cast<std::size_t>(input.between(0, 9)));
  for (std::int64_t& offset : offsets) {
    offset = input.between(0, total);
  }
  std::ranges::sort(offsets);
  if (!offsets.empty() && input.one_in(8)) {
    offsets[static_cast<std::size_t>(input.between(0, static_cast<std::int64_t>(offsets.size()) - 1))] =
        input.one_in(2) ? INT64_MIN : input.between(-1, total + 1);
  }
  const auto described = static_cast<std::int64_t>(offsets.size()) - 1;
  Row rows(static_cast<std::size_t>(input.between(0, 6)));
  for (std::int64_t& row : rows) {
    row = input.one_in(20) ? INT64_MAX : input.between(input.one_in(20) ? -1 : 0, std::max<std::int64_t>(0, described));
  }
  const std::int64_t width = input.between(0, 70);

  const auto begin = [&](std::int64_t row) { return offsets[static_cast<std::size_t>(row)]; };
  const auto end = [&](std::int64_t row) { return offsets[static_cast<std::size_t>(row) + 1]; };
  const bool allowed = width >= 1 && std::ranges::all_of(rows, [&](std::int64_t row) {
                         return 0 <= row && row < described && 0 <= begin(row) && begin(row) <= end(row) &&
                                end(row) <= total && end(row) - begin(row) <= width;
                       });

  PaddedRows padded;
  const bool refused = refuses([&] { padded = pad_rows(flat, offsets, rows, width, -7); });
  expect(refused != allowed, "pad_rows refuses what is not allowed, and nothing else");
  if (!allowed) {
    return;
  }

  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::size_t index = i * static_cast<std::size_t>(width) + static_cast<std::size_t>(j);
      const bool token = j < end(rows[i]) - begin(rows[i]);
      expect(padded.mask.at(index) == (token ? 1 : 0), "the mask covers the tokens");
      expect(padded.ids.at(index) == (token ? flat[static_cast<std::size_t>(begin(rows[i]) + j)] : -7),
             "a row holds its tokens, then the fill");
    }
  }
}

}  // namespace
}  // namespace groundwire::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  groundwire::fuzz::Input input(data, size);
  groundwire::fuzz::check_plan(input);
  groundwire::fuzz::check_rows(input);
  return 0;
}
