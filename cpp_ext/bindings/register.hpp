// One function per topic: each adds its part of the core to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace groundwire::bindings {

void register_packing(nanobind::module_& module);
void register_spans(nanobind::module_& module);
void register_beam_search(nanobind::module_& module);

}  // namespace groundwire::bindings
