// Device memory, which is host memory, and the copies to and from it.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace {

bool holds(const Blocks& blocks, const void* pointer) {
  auto block = blocks.upper_bound(pointer);
  if (block == blocks.begin()) return false;
  --block;
  return static_cast<const char*>(pointer) < static_cast<const char*>(block->first) + block->second;
}

cudaError_t allocate(void** pointer, std::size_t bytes, Blocks& blocks, const char* event) {
  if (state().lost) return health();
  if (const cudaError_t error = refuse(event)) return error;
  const std::size_t rounded = bytes == 0 ? 256 : (bytes + 255) / 256 * 256;
  std::lock_guard guard(state().mutex);
  const bool on_device = &blocks == &state().device;
  if (on_device && state().live + bytes > state().memory) return set_error(cudaErrorMemoryAllocation);
  if (posix_memalign(pointer, 256, rounded) != 0) return set_error(cudaErrorMemoryAllocation);
  blocks[*pointer] = rounded;
  if (on_device) {
    state().live += rounded;
    state().peak = std::max(state().peak, state().live);
  }
  Count& count = state().counts[event];
  count.times += 1;
  count.bytes += bytes;
  return cudaSuccess;
}

cudaError_t release(void* pointer, Blocks& blocks, const char* event) {
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = refuse(event)) return error;
  ledger_note(event, "", 0);
  std::lock_guard guard(state().mutex);
  if (auto block = blocks.find(pointer); block != blocks.end()) {
    if (&blocks == &state().device) state().live -= block->second;
    blocks.erase(block);
    std::free(pointer);
  }
  return cudaSuccess;
}

// A single number is what was copied there, since a shape or a k of TopK may come back; all else is what kernels leave.
void read_device(void* target, const void* source, std::size_t bytes) {
  std::lock_guard guard(state().mutex);
  const auto scalar = state().scalars.find(source);
  if (scalar != state().scalars.end() && bytes == sizeof scalar->second)
    std::memcpy(target, &scalar->second, bytes);
  else
    std::memset(target, state().content, bytes);
}

// Counts `copy:HtoD/pageable/blocking` and so on. A copy of pageable memory makes its thread wait, whatever is called.
cudaError_t copy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind, bool blocking) {
  if (state().lost) return health();
  static const char* const directions[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};
  std::string detail = directions[kind];
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost) {
    std::lock_guard guard(state().mutex);
    const bool pinned = holds(state().pinned, kind == cudaMemcpyHostToDevice ? source : target);
    detail += pinned ? "/pinned" : "/pageable";
    blocking = blocking || !pinned;
    if (kind == cudaMemcpyHostToDevice) {
      if (bytes == sizeof(long))
        std::memcpy(&state().scalars[target], source, bytes);
      else
        state().scalars.erase(target);
    }
  }
  detail += blocking ? "/blocking" : "/async";
  if (blocking) {
    if (const cudaError_t error = refuse(detail.c_str())) return error;
  }
  bool captured = false;
  {
    std::lock_guard guard(state().mutex);
    captured = own_capture() != nullptr;
  }
  ledger_note(captured ? "captured-copy" : "copy", detail.c_str(), bytes);
  if (kind == cudaMemcpyDeviceToHost)
    read_device(target, source, bytes);
  else
    std::memmove(target, source, bytes);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return allocate(pointer, bytes, state().device, "malloc:device");
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t, cudaStream_t) {
  return allocate(pointer, bytes, state().device, "malloc:device");
}
cudaError_t cudaFree(void* pointer) {
  return release(pointer, state().device, "free");
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  return release(pointer, state().device, "free");
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, state().pinned, "malloc:pinned");
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return allocate(pointer, bytes, state().pinned, "malloc:pinned");
}
cudaError_t cudaFreeHost(void* pointer) {
  return release(pointer, state().pinned, "free");
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return make_handle(pool);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<unsigned long long*>(value) = 0;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  std::memset(attributes, 0, sizeof *attributes);
  std::lock_guard guard(state().mutex);
  if (holds(state().device, pointer)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(pointer);
  } else if (holds(state().pinned, pointer)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = const_cast<void*>(pointer);
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return copy(target, source, bytes, kind, true);
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return copy(target, source, bytes, kind, false);
}
cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source, std::size_t source_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t) {
  for (std::size_t row = 0; row < height; ++row)
    std::memmove(static_cast<char*>(target) + row * target_pitch, static_cast<const char*>(source) + row * source_pitch,
                 width);
  return copy(target, target, 0, kind == cudaMemcpyDeviceToHost ? cudaMemcpyDefault : kind, false);
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void*, std::size_t bytes, std::size_t, cudaMemcpyKind) {
  std::memset(target, 0, bytes);
  return copy(target, target, bytes, cudaMemcpyHostToHost, true);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t) {
  std::memset(pointer, value, bytes);
  ledger_note("memset", "", bytes);
  return health();
}
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  if (const cudaError_t error = refuse("memset")) return error;
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}
}
