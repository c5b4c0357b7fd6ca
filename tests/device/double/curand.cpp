// A double of libcurand, which the CUDA provider links and Groundwire's graphs do not use.
extern "C" {
int curandCreateGenerator() {
  return 0;
}
}
