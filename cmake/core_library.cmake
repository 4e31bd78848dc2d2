# A library of what runs on a device, too: no heap, no exceptions, and equal bytes.
# -fno-math-errno: a square root is one instruction, not a call.
# -fno-trapping-math: comparisons become selects, so that loops vectorize; values stay the same.
# Hidden: a call within the library may be inlined where the library becomes part of a shared one.
function(pmt_add_core_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/cpp)
  target_compile_options(${name} PRIVATE -O3 -fno-exceptions -fno-rtti -fno-math-errno
    -fno-trapping-math -Wconversion -Wdouble-promotion)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
