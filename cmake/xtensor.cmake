# Target pmt_xtensor: the xtensor headers, from the first place that has them.
#   1. -DPMT_XTENSOR_INCLUDE=/folder   2. an installed package (Debian libxtensor-dev, conda)
#   3. the pinned release, downloaded  4. an error that says what to install
add_library(pmt_xtensor INTERFACE)
set(PMT_XTENSOR_INCLUDE "" CACHE PATH "Folder that holds xtensor/ and xtl/")

if(PMT_XTENSOR_INCLUDE)
  target_include_directories(pmt_xtensor SYSTEM INTERFACE ${PMT_XTENSOR_INCLUDE})
  return()
endif()

find_package(xtensor CONFIG QUIET)
if(xtensor_FOUND)
  target_link_libraries(pmt_xtensor INTERFACE xtensor)
  return()
endif()

include(FetchContent)
# The sub-directory does not exist: only the headers are wanted, not the projects.
FetchContent_Declare(xtl URL https://github.com/xtensor-stack/xtl/archive/refs/tags/0.7.5.tar.gz
  URL_HASH SHA256=3286fef5fee5d58f82f7b91375cd449c819848584bae9367893501114d923cbe
  SOURCE_SUBDIR none DOWNLOAD_EXTRACT_TIMESTAMP TRUE)
FetchContent_Declare(xtensor URL https://github.com/xtensor-stack/xtensor/archive/refs/tags/0.24.3.tar.gz
  URL_HASH SHA256=3acde856b9fb8cf4e2a7b66726da541275d40ab9b002e618ad985ab97f08ca4f
  SOURCE_SUBDIR none DOWNLOAD_EXTRACT_TIMESTAMP TRUE)
FetchContent_MakeAvailable(xtl xtensor)
if(NOT EXISTS ${xtensor_SOURCE_DIR}/include/xtensor)
  message(FATAL_ERROR "xtensor was not found and could not be downloaded. Install it:\n"
    "  Debian, Ubuntu: apt-get install libxtensor-dev\n"
    "  conda:          conda install -c conda-forge xtensor=0.24\n"
    "or pass -DPMT_XTENSOR_INCLUDE=/folder/that/holds/xtensor")
endif()
target_include_directories(pmt_xtensor SYSTEM INTERFACE ${xtl_SOURCE_DIR}/include ${xtensor_SOURCE_DIR}/include)
