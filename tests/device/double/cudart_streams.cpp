// Streams, events and captured graphs. Everything is done when it is asked for, so that nothing is ever waited for.
#include <string>

#include "state.hpp"

thread_local bool capturing = false;

namespace {

cudaError_t synchronize(const char* what) {
  ledger_note("sync", what, 0);
  return health();
}

}  // namespace

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
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  capturing = true;
  ledger_note("capture", "", 0);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  capturing = false;
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
