#include <nanobind/nanobind.h>

#include "bindings/register.hpp"

NB_MODULE(_native, module) {
  module.doc() =
      "Length packing, answer spans and beam search. Array arguments are C-contiguous and never copied; a wrong "
      "argument raises ValueError; the GIL is released while the core works.";
  groundwire::bindings::register_packing(module);
  groundwire::bindings::register_spans(module);
  groundwire::bindings::register_beam_search(module);
}
