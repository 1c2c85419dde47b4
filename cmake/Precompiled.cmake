# Two headers precompiled once for all folders: what sources share, and what tests share. A folder that is compiled
# with flags of its own (libtorch's) names its own with nereid_folder's PCH.
function(nereid_precompiled name)
  cmake_parse_arguments(arg "" "" "DEPS;HEADERS" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

set(shared_deps Threads::Threads fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json)
set(shared_headers <algorithm> <array> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional>
  <set> <span> <sstream> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
nereid_precompiled(nereid_precompiled_source DEPS ${shared_deps} HEADERS ${shared_headers})

# A test's own code need not be fast, and is compiled sooner so: a quarter sooner.
add_library(nereid_test_flags INTERFACE)
target_compile_options(nereid_test_flags INTERFACE $<$<CONFIG:Release>:-O0>)
nereid_precompiled(nereid_precompiled_test DEPS ${shared_deps} nereid_test_flags GTest::gtest GTest::gmock
  HEADERS ${shared_headers} <gmock/gmock.h> <gtest/gtest.h>)
# Programs are compiled as -fPIE, which is another language to a precompiled header.
target_compile_options(nereid_precompiled_test PRIVATE -fPIE)
set_target_properties(nereid_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
