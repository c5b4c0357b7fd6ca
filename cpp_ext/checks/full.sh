#!/usr/bin/env bash
# Test the C++ core and its bindings under ASan, UBSan and TSan, and fuzz them: [seconds per fuzz target].
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH="$PWD/.venv/bin:$PATH"
seconds="${1:-60}"
tests=(-q -p tests.support.native_module -p no:cacheprovider tests/unit/native)

build_module() {  # directory, sanitizers
  cmake -S cpp_ext -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=g++ \
    -DGROUNDWIRE_SANITIZE="$2" -DPython_EXECUTABLE="$(command -v python)" >"$1.log"
  cmake --build "$1" --parallel 2 >>"$1.log"
  ls "$PWD/$1"/_native*.so
}

mkdir -p build
echo "== fuzz targets, seeded inputs, ASan and UBSan"
cpp_ext/checks/sanitize.sh 5000

clang="${CLANGXX:-$(command -v clang++-19 clang++-18 clang++-17 clang++-16 clang++ | head -n 1 || true)}"
if [ -n "$clang" ]; then
  echo "== fuzz targets, libFuzzer of $clang, $seconds s each"
  cmake -S cpp_ext -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$clang" \
    -DGROUNDWIRE_MODULE=OFF -DGROUNDWIRE_FUZZ=ON -DGROUNDWIRE_SANITIZE=address,undefined
  cmake --build build/fuzz --parallel 2
  for target in build/fuzz/fuzz_*; do
    topic="${target##*fuzz_}"
    mkdir -p "build/corpus/$topic"
    # New inputs go to the first directory; a failing one is written to build/.
    "$target" -max_total_time="$seconds" -max_len=600 -rss_limit_mb=1024 -print_final_stats=1 \
      -artifact_prefix="build/$topic-" "build/corpus/$topic" "cpp_ext/fuzz/corpus/$topic" 2>&1 | grep -v '^#.*\(NEW\|REDUCE\|pulse\) '
  done
else
  echo "== libFuzzer: left out, there is no clang++ 16 or later (set CLANGXX to its path)"
fi

if python -c "import atheris" 2>/dev/null; then
  for target in json_lines gzip csv parquet manifest calibration graph; do
    echo "== readers of files, $target, $seconds s"
    python -m tests.fuzz.readers "$target" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 \
      -print_final_stats=1 -artifact_prefix="build/$target-" 2>&1 | grep -v '^#.*\(NEW\|REDUCE\|pulse\) '
  done
else
  echo "== readers of files: left out, atheris is not installed (pip install atheris)"
fi

echo "== module and tests, ASan and UBSan"
module="$(build_module build/asan-module address,undefined)"
# Python itself leaks on purpose, and libstdc++ must be there when ASan looks for its exceptions.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
  GROUNDWIRE_NATIVE="$module" python -m pytest "${tests[@]}"

echo "== module and tests with threads, TSan"
module="$(build_module build/tsan-module thread)"
LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" TSAN_OPTIONS=halt_on_error=1 \
  GROUNDWIRE_NATIVE="$module" python -m pytest "${tests[@]}" -k threads

echo "== every input of larger domains"
GROUNDWIRE_EXHAUSTIVE=1 python -m pytest -q -p no:cacheprovider tests/unit/native/test_exhaustive.py
