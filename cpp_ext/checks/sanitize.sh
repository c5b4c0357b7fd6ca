#!/usr/bin/env bash
# Build the native core with ASan and UBSan and drive every fuzz target with seeded inputs: [inputs per target] [first seed].
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH="$PWD/.venv/bin:$PATH"
inputs="${1:-3000}"
seed="${2:-1}"
build="build/sanitize"

cmake -S cpp_ext -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DGROUNDWIRE_MODULE=OFF -DGROUNDWIRE_FUZZ=ON -DGROUNDWIRE_SANITIZE=address,undefined
cmake --build "$build" --parallel 2
for target in "$build"/fuzz_*; do
  "$target" "$inputs" "$seed"
done
