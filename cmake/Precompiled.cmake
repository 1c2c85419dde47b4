# Headers precompiled once for all folders: what sources share, what tests share, and both with libtorch. None
# of ours is among them: an edit of one would compile everything again. A folder that is compiled with flags
# of its own names its own with nereid_folder's PCH.
function(nereid_precompiled_header name)
  cmake_parse_arguments(arg "" "" "DEPS;HEADERS" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

set(shared_deps Threads::Threads fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json)
set(shared_headers <algorithm> <array> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <sstream> <string> <string_view> <unordered_map> <utility> <variant>
  <vector> <fmt/format.h> <nlohmann/json.hpp>)
nereid_precompiled_header(nereid_precompiled DEPS ${shared_deps} HEADERS ${shared_headers})
# Of folders that wait for others most of the time: a quarter sooner.
add_library(nereid_waiting_flags INTERFACE)
target_compile_options(nereid_waiting_flags INTERFACE $<$<CONFIG:Release>:-O1>)
nereid_precompiled_header(nereid_precompiled_waiting DEPS ${shared_deps} nereid_waiting_flags
  HEADERS ${shared_headers})

# What most files that use libtorch need of it; 3 s of each such file are templates that its headers ask for,
# so there are few.
set(torch_headers <ATen/Context.h> <ATen/Parallel.h> <ATen/TensorOperators.h> <ATen/core/Tensor.h>
  <ATen/core/dispatch/Dispatcher.h> <ATen/core/ivalue.h> <ATen/core/stack.h> <ATen/ops/arange.h>
  <ATen/ops/empty.h> <ATen/ops/from_blob.h>
  <ATen/ops/tensor.h> <ATen/ops/zeros.h>
  <c10/core/GradMode.h> <fmt/ranges.h>)
nereid_precompiled_header(nereid_precompiled_torch DEPS ${shared_deps} torch::cpu
  HEADERS ${shared_headers} ${torch_headers})

# A test's own code need not be fast, and is compiled sooner so: a quarter sooner.
add_library(nereid_test_flags INTERFACE)
target_compile_options(nereid_test_flags INTERFACE $<$<CONFIG:Release>:-O0>)
set(test_deps nereid_test_flags GTest::gtest GTest::gmock)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)
nereid_precompiled_header(nereid_precompiled_test DEPS ${shared_deps} ${test_deps}
  HEADERS ${shared_headers} ${test_headers})
nereid_precompiled_header(nereid_precompiled_torch_test DEPS ${shared_deps} ${test_deps} torch::cpu
  HEADERS ${shared_headers} ${torch_headers} ${test_headers})
# Programs are compiled as -fPIE, which is another language to a precompiled header.
foreach(test nereid_precompiled_test nereid_precompiled_torch_test)
  target_compile_options(${test} PRIVATE -fPIE)
  set_target_properties(${test} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endforeach()
