// What the files of the double of libcudart share.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "driver_types.h"
#include "ledger.hpp"
#include "vector_types.h"

struct Count {
  long times = 0;
  std::size_t bytes = 0;
};

using Blocks = std::map<const void*, std::size_t>;

/// A capture that was begun and not ended.
struct Capture {
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool valid = true;
};

struct State {
  std::mutex mutex;
  std::map<std::string, Count> counts;
  std::unordered_map<const void*, std::string> kernels;
  Blocks device;
  Blocks pinned;
  /// The single numbers that were copied to the device, by address.
  std::map<const void*, long> scalars;
  std::map<cudaStream_t, Capture> captures;
  /// Captures that something outside will end, from the next one on.
  int spoiled = 0;
  /// Every byte of the memory that kernels would have written.
  int content = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
  std::size_t memory = std::size_t{141} << 30;
  std::atomic<bool> lost{false};
  std::atomic<long> next_handle{0x1000};
};

/// Never destroyed: libraries still call in while the process ends.
State& state();

/// The capture of this thread; null if there is none. The mutex is held.
Capture* own_capture();

/// Remembers the error for cudaGetLastError, and returns it.
cudaError_t set_error(cudaError_t error);

/// The error of a call that CUDA refuses while a graph is captured, else success.
inline cudaError_t refuse(const char* call) {
  return set_error(static_cast<cudaError_t>(ledger_refuse(call)));
}

/// The error of a lost device, else success.
inline cudaError_t health() {
  return set_error(state().lost ? cudaErrorIllegalAddress : cudaSuccess);
}

template <typename Handle>
cudaError_t make_handle(Handle* handle) {
  *handle = reinterpret_cast<Handle>(state().next_handle += 16);
  return cudaSuccess;
}
