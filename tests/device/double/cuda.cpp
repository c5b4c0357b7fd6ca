// A double of libcuda, the driver: what the CUDA provider calls without the runtime library.
extern "C" {
int cuInit(unsigned) {
  return 0;
}
int cuTensorMapEncodeTiled() {
  return 0;
}
}
