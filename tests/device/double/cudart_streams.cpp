// Streams, events and captured graphs. Everything is done when it is asked for, so that nothing is ever waited for.
// A wait is refused while any thread captures: CUDA allows some, and the runtime needs none of them.
#include <algorithm>
#include <string>

#include "state.hpp"

namespace {

cudaError_t synchronize(const char* what) {
  if (const cudaError_t error = refuse(what)) return error;
  ledger_note("sync", what, 0);
  return health();
}

}  // namespace

Capture* own_capture() {
  auto& captures = state().captures;
  const auto own = std::ranges::find_if(
      captures, [](const auto& entry) { return entry.second.thread == std::this_thread::get_id(); });
  return own == captures.end() ? nullptr : &own->second;
}

extern "C" {

cudaError_t cudaDeviceSynchronize() {
  return synchronize("device");
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return synchronize("stream");
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return synchronize("event");
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return make_handle(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make_handle(stream);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  ledger_note("stream", std::to_string(priority).c_str(), 0);
  return make_handle(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make_handle(event);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return make_handle(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  std::lock_guard guard(state().mutex);
  const auto found = state().captures.find(stream);
  *status = found == state().captures.end() ? cudaStreamCaptureStatusNone
            : found->second.valid           ? cudaStreamCaptureStatusActive
                                            : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  ledger_note("capture", "", 0);
  std::lock_guard guard(state().mutex);
  const bool valid = state().spoiled == 0;
  if (!valid) --state().spoiled;
  const bool begun = state().captures.try_emplace(stream, Capture{std::this_thread::get_id(), mode, valid}).second;
  return set_error(begun ? cudaSuccess : cudaErrorIllegalState);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard guard(state().mutex);
  const auto found = state().captures.find(stream);
  if (found == state().captures.end()) return set_error(cudaErrorIllegalState);
  const bool valid = found->second.valid;
  state().captures.erase(found);
  *graph = nullptr;
  if (!valid) return set_error(cudaErrorStreamCaptureInvalidated);
  return make_handle(graph);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* graph, cudaGraph_t, unsigned long long) {
  return make_handle(graph);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  ledger_note("replay", "", 0);
  return health();
}
cudaError_t cudaGraphDestroy(cudaGraph_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return cudaSuccess;
}
}
