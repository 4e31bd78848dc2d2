# Toolchain: GCC for 64-bit Arm Linux; the tests run under qemu-user. The header-only libraries of the
# tests are the build machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
foreach(library xtensor xtl doctest simde)
  if(EXISTS /usr/include/${library})
    file(CREATE_LINK /usr/include/${library} ${CMAKE_BINARY_DIR}/headers/${library} SYMBOLIC)
  endif()
endforeach()
set(PMT_XTENSOR_INCLUDE ${CMAKE_BINARY_DIR}/headers CACHE PATH "")
set(PMT_DOCTEST_INCLUDE ${CMAKE_BINARY_DIR}/headers CACHE PATH "")
set(PMT_SIMDE_INCLUDE ${CMAKE_BINARY_DIR}/headers CACHE PATH "")
