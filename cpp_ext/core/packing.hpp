// Packs token rows of many lengths into rectangular batches.
//
// The padded width of a row is a function of its own length, and all rows of a batch have the same width. So a result
// never depends on which other rows share the batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace groundwire {

/// The longest row that can be packed. It keeps products of widths and row counts far from overflow.
inline constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;

/// The padded width of a row of `length` tokens: the next multiple of 8 up to 64, of 16 up to 256, of 32 above, and
/// never less than 8.
std::int64_t bucket_width(std::int64_t length);

/// Batch m holds the rows order[bounds[m]] .. order[bounds[m + 1] - 1], all padded to widths[m].
struct Batches {
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> bounds;
  std::vector<std::int64_t> widths;
};

/// Cuts rows, sorted stably by bucket width, into batches of one width, of at most `max_rows` rows, and of at most
/// `max_tokens` padded tokens. A row wider than the budget gets a batch of its own.
Batches plan_batches(std::span<const std::int64_t> lengths, std::int64_t max_tokens, std::int64_t max_rows);

/// Rows of one batch: `ids` and `mask` are [rows, width]; the mask is 1 on tokens and 0 on padding.
struct PaddedRows {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> mask;
};

/// Copies the given rows of a ragged table, where row r is flat[offsets[r] .. offsets[r + 1]), into a batch.
PaddedRows pad_rows(std::span<const std::int64_t> flat, std::span<const std::int64_t> offsets,
                    std::span<const std::int64_t> rows, std::int64_t width, std::int64_t fill);

}  // namespace groundwire
