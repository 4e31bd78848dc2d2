# The package that find_package(pmt) finds. In a wheel, whose pyproject.toml puts the core beside it, as component
# python; for `cmake --install BUILD --component core --prefix DIR`, the core with it.
include(CMakePackageConfigHelpers)
set(version ${PROJECT_BINARY_DIR}/pmtConfigVersion.cmake)
write_basic_package_version_file(${version} COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
set(package ${PROJECT_SOURCE_DIR}/cmake/pmtConfig.cmake ${PROJECT_SOURCE_DIR}/cmake/core_library.cmake ${version})
install(FILES ${package} DESTINATION pmt/_native/cmake COMPONENT python)
install(FILES ${package} DESTINATION share/pmt/cmake COMPONENT core)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp/core DESTINATION share/pmt COMPONENT core)
