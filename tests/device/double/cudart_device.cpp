// The device: an H200, or several (CUDA_DOUBLE_DEVICES).
#include <cstdlib>
#include <cstring>
#include <utility>

#include "state.hpp"

namespace {

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

int device_count() {
  const char* wanted = std::getenv("CUDA_DOUBLE_DEVICES");
  return wanted == nullptr ? 1 : std::atoi(wanted);
}

}  // namespace

cudaError_t set_error(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return set_error(cudaErrorInvalidDevice);
  if (device != current_device) ledger_note("set-device", std::to_string(device).c_str(), 0);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* device, int) {
  std::memset(device, 0, sizeof *device);
  std::strcpy(device->name, "Double of an H200");
  device->totalGlobalMem = state().memory;
  device->sharedMemPerBlock = 49152;
  device->sharedMemPerBlockOptin = 232448;
  device->sharedMemPerMultiprocessor = 233472;
  device->regsPerBlock = device->regsPerMultiprocessor = 65536;
  device->warpSize = 32;
  device->maxThreadsPerBlock = 1024;
  device->maxThreadsDim[0] = device->maxThreadsDim[1] = 1024;
  device->maxThreadsDim[2] = 64;
  device->maxGridSize[0] = 2147483647;
  device->maxGridSize[1] = device->maxGridSize[2] = 65535;
  device->totalConstMem = 65536;
  device->major = 9;
  device->minor = 0;
  device->multiProcessorCount = 132;
  device->l2CacheSize = 60 << 20;
  device->maxThreadsPerMultiProcessor = 2048;
  device->maxBlocksPerMultiProcessor = 32;
  device->unifiedAddressing = device->concurrentKernels = device->memoryPoolsSupported = 1;
  device->asyncEngineCount = 3;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 49152;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = 65536;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    case cudaDevAttrL2CacheSize:
      *value = 60 << 20;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 233472;
      break;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      *value = 65536;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 232448;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = 32;
      break;
    default:
      *value = 1;
  }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = state().memory;
  *free = state().memory - state().live;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = reinterpret_cast<void*>(+[]() { return 0; });
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "error of the double";
  }
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    default:
      return "cudaErrorUnknown";
  }
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return last_error;
}
}
