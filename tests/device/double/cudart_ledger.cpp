// The counts of the double of libcudart, and its faults.
#include <cstring>

#include "state.hpp"

State& state() {
  static auto* instance = new State;
  return *instance;
}

extern "C" {
cudaError_t cudaGetLastError();

void ledger_note(const char* event, const char* detail, std::size_t bytes) {
  std::string name = event;
  if (detail != nullptr && *detail != 0) name = name + ":" + detail;
  std::lock_guard guard(state().mutex);
  Count& count = state().counts[name];
  count.times += 1;
  count.bytes += bytes;
}

int ledger_launch(const char* kernel) {
  if (state().lost) return cudaErrorIllegalAddress;
  bool captured = false;
  {
    std::lock_guard guard(state().mutex);
    const Capture* capture = own_capture();
    if (capture != nullptr && !capture->valid) return cudaErrorStreamCaptureInvalidated;
    captured = capture != nullptr;
  }
  ledger_note(captured ? "captured" : "launch", kernel, 0);
  return 0;
}

int ledger_refuse(const char* call) {
  bool refused = false;
  {
    std::lock_guard guard(state().mutex);
    for (auto& [stream, capture] : state().captures) {
      const bool own = capture.thread == std::this_thread::get_id();
      if (capture.mode == cudaStreamCaptureModeRelaxed || (capture.mode != cudaStreamCaptureModeGlobal && !own)) continue;
      capture.valid = false;
      refused = true;
    }
  }
  if (!refused) return 0;
  ledger_note("refused", call, 0);
  return cudaErrorStreamCaptureUnsupported;
}

void ledger_reset() {
  std::lock_guard guard(state().mutex);
  state().counts.clear();
  state().peak = state().live;
}

// One line per event: times, bytes and name, with tabs between. Returns the bytes that all of it needs.
std::size_t ledger_read(char* buffer, std::size_t size) {
  std::lock_guard guard(state().mutex);
  std::string text;
  for (const auto& [name, count] : state().counts)
    text += std::to_string(count.times) + "\t" + std::to_string(count.bytes) + "\t" + name + "\n";
  if (text.size() < size) std::memcpy(buffer, text.c_str(), text.size() + 1);
  return text.size() + 1;
}

std::size_t ledger_live_bytes() {
  return state().live;
}
std::size_t ledger_peak_bytes() {
  return state().peak;
}
// What every byte that kernels would have written reads as from now on.
void double_set_content(int value) {
  state().content = value;
}
// From now on, allocations beyond this many bytes fail.
void double_set_memory(std::size_t bytes) {
  state().memory = bytes;
}
// So many captures, from the next one on, are ended by something outside.
void double_spoil_captures(int count) {
  state().spoiled = count;
}
// From now on, every launch, copy and synchronisation fails as after an illegal access; false ends it.
void double_lose_device(bool value) {
  state().lost = value;
  cudaGetLastError();  // what this thread remembers
}
}
