// A double of libcublas 13: every product counts as one launch.
#include "ledger.hpp"

extern "C" {
int cublasCreate_v2(void** handle) {
  if (ledger_refuse("cublasCreate") != 0) return 1;  // it allocates
  *handle = handle;
  return 0;
}
int cublasDestroy_v2(void*) {
  return 0;
}
int cublasSetStream_v2(void*, void*) {
  return 0;
}
int cublasGetMathMode(void*, int* mode) {
  *mode = 0;
  return 0;
}
int cublasSetMathMode(void*, int mode) {
  // 3 is CUBLAS_TF32_TENSOR_OP_MATH
  ledger_note("cublas-math-mode", mode == 3 ? "tf32" : "other", 0);
  return 0;
}
const char* cublasGetStatusName(int) {
  return "status of the double";
}
const char* cublasGetStatusString(int) {
  return "status of the double";
}

// 13: CUBLAS_STATUS_EXECUTION_FAILED
#define LAUNCH(name)                                     \
  int name() {                                           \
    return ledger_launch("cublas:" #name) == 0 ? 0 : 13; \
  }
LAUNCH(cublasDgeam)
LAUNCH(cublasDgemmBatched)
LAUNCH(cublasDgemmStridedBatched)
LAUNCH(cublasDgemm_v2)
LAUNCH(cublasDgetrfBatched)
LAUNCH(cublasDgetriBatched)
LAUNCH(cublasGemmBatchedEx)
LAUNCH(cublasGemmEx)
LAUNCH(cublasGemmStridedBatchedEx)
LAUNCH(cublasScopy_v2)
LAUNCH(cublasSgeam)
LAUNCH(cublasSgemmBatched)
LAUNCH(cublasSgemmStridedBatched)
LAUNCH(cublasSgemm_v2)
LAUNCH(cublasSgetrfBatched)
LAUNCH(cublasSgetriBatched)
LAUNCH(cublasSscal_v2)
}
