// A double of libcudnn 9 with the functions that the CUDA provider looks up: what computes counts as one launch.
#include "ledger.hpp"

#define LAUNCH(name)                                      \
  int name() {                                            \
    return ledger_launch("cudnn:" #name) == 0 ? 0 : 5000; \
  }
#define CREATE(name)        \
  int name(void** handle) { \
    *handle = handle;       \
    return 0;               \
  }
#define SUCCEED(name) \
  int name() {        \
    return 0;         \
  }

extern "C" {
std::size_t cudnnGetVersion() {
  return 91400;
}
const char* cudnnGetErrorString(int) {
  return "status of the double";
}
const char* cudnnGetLastErrorString() {
  return "status of the double";
}
int cudnnGetReductionIndicesSize(void*, void*, void*, void*, std::size_t* size) {
  *size = 256;
  return 0;
}
int cudnnGetReductionWorkspaceSize(void*, void*, void*, void*, std::size_t* size) {
  *size = 256;
  return 0;
}

LAUNCH(cudnnActivationForward)
LAUNCH(cudnnAddTensor)
LAUNCH(cudnnBackendExecute)
LAUNCH(cudnnConvolutionBiasActivationForward)
LAUNCH(cudnnConvolutionForward)
LAUNCH(cudnnLRNCrossChannelForward)
LAUNCH(cudnnPoolingForward)
LAUNCH(cudnnRNNForward)
LAUNCH(cudnnReduceTensor)
LAUNCH(cudnnSoftmaxForward)

CREATE(cudnnCreate)
CREATE(cudnnCreateActivationDescriptor)
CREATE(cudnnCreateConvolutionDescriptor)
CREATE(cudnnCreateDropoutDescriptor)
CREATE(cudnnCreateFilterDescriptor)
CREATE(cudnnCreateLRNDescriptor)
CREATE(cudnnCreatePoolingDescriptor)
CREATE(cudnnCreateRNNDataDescriptor)
CREATE(cudnnCreateRNNDescriptor)
CREATE(cudnnCreateReduceTensorDescriptor)
CREATE(cudnnCreateTensorDescriptor)

SUCCEED(cudnnBackendCreateDescriptor)
SUCCEED(cudnnBackendDestroyDescriptor)
SUCCEED(cudnnBackendFinalize)
SUCCEED(cudnnBackendGetAttribute)
SUCCEED(cudnnBackendSetAttribute)
SUCCEED(cudnnBatchNormalizationForwardInference)
SUCCEED(cudnnBatchNormalizationForwardTraining)
SUCCEED(cudnnDeriveBNTensorDescriptor)
SUCCEED(cudnnDestroy)
SUCCEED(cudnnDestroyActivationDescriptor)
SUCCEED(cudnnDestroyConvolutionDescriptor)
SUCCEED(cudnnDestroyDropoutDescriptor)
SUCCEED(cudnnDestroyFilterDescriptor)
SUCCEED(cudnnDestroyLRNDescriptor)
SUCCEED(cudnnDestroyPoolingDescriptor)
SUCCEED(cudnnDestroyRNNDataDescriptor)
SUCCEED(cudnnDestroyRNNDescriptor)
SUCCEED(cudnnDestroyReduceTensorDescriptor)
SUCCEED(cudnnDestroyTensorDescriptor)
SUCCEED(cudnnDropoutGetStatesSize)
SUCCEED(cudnnFindConvolutionForwardAlgorithmEx)
SUCCEED(cudnnGetConvolutionForwardAlgorithm_v7)
SUCCEED(cudnnGetConvolutionForwardWorkspaceSize)
SUCCEED(cudnnGetRNNTempSpaceSizes)
SUCCEED(cudnnGetRNNWeightParams)
SUCCEED(cudnnGetStream)
SUCCEED(cudnnGetTensorNdDescriptor)
SUCCEED(cudnnSetActivationDescriptor)
SUCCEED(cudnnSetConvolutionGroupCount)
SUCCEED(cudnnSetConvolutionMathType)
SUCCEED(cudnnSetConvolutionNdDescriptor)
SUCCEED(cudnnSetDropoutDescriptor)
SUCCEED(cudnnSetFilterNdDescriptor)
SUCCEED(cudnnSetLRNDescriptor)
SUCCEED(cudnnSetPoolingNdDescriptor)
SUCCEED(cudnnSetRNNDataDescriptor)
SUCCEED(cudnnSetRNNDescriptor_v8)
SUCCEED(cudnnSetReduceTensorDescriptor)
SUCCEED(cudnnSetStream)
SUCCEED(cudnnSetTensorNdDescriptor)
}
