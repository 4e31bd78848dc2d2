# find_package(pmt): the C++ core as target pmt::core. It is compiled with the project that asks for it, by that
# project's compiler and for that project's machine, a microcontroller as well as a PC.
if(TARGET pmt::core)
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/core_library.cmake)
# Installed, or in the source tree.
set(pmt_core_folder ${CMAKE_CURRENT_LIST_DIR}/../core)
if(NOT EXISTS ${pmt_core_folder})
  set(pmt_core_folder ${CMAKE_CURRENT_LIST_DIR}/../cpp/core)
endif()
pmt_add_core_library(pmt_core ${pmt_core_folder})
add_library(pmt::core ALIAS pmt_core)
