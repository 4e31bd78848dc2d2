# A library of what runs on a device, too: no heap, no exceptions, and equal bytes. `folder` holds its sources; headers
# are included by their path from the folder above it.
# -fno-math-errno: a square root is one instruction, not a call.
# -fno-trapping-math: comparisons become selects, so that loops vectorize; values stay the same.
# -ffp-contract=off: fused multiply-add changes the last bit, also in headers, and with it the trained weights.
# Hidden: a call within the library may be inlined where the library becomes part of a shared one.
function(pmt_add_core_library name folder)
  get_filename_component(include "${folder}/.." ABSOLUTE)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC "${include}")
  target_compile_features(${name} PUBLIC cxx_std_17)
  target_compile_options(${name} PUBLIC -ffp-contract=off PRIVATE -O3 -fno-exceptions -fno-rtti
    -fno-math-errno -fno-trapping-math -Wconversion -Wdouble-promotion)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
