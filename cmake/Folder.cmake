# nereid_folder(NAME DEPS ... ): the library of one folder, and the tests next to its sources.
#
# Sources are compiled in a few large pieces (CMAKE_UNITY_BUILD, which the presets set: half of a clean
# build's time), so names in unnamed namespaces must differ within a folder;
# -DNEREID_SINGLE_FILES="verify;trace" compiles these folders file by file while one works on them.
#
# Every *.cpp becomes part of `nereid_NAME`, every *_test.cpp part of `NAME_test` (one ctest entry per test
# case; with TORCH one for all, for libtorch takes longer to load than most cases do), every *_fuzz.cpp a fuzz
# target, *_main.cpp is left to the folder. TORCH shares the precompiled headers that hold libtorch's, PCH
# names one for this folder's sources alone; TEST_DEPS is what only tests link, TEST_SOURCES what they compile
# besides; SINGLE_TEST is for tests that share what is slow to start (one ctest entry for all);
# OPTIMIZED_TESTS is for tests that compute much themselves, WARM_TESTS for those that take a warm worker from
# each other; WAITING is for folders that wait for others and need not be fast; NOT_FUZZED names sources that
# no fuzz target needs; FOLDERS adds subfolders to the library; COST is about what the longest test takes, in
# seconds, so that it starts early.
function(nereid_folder name)
  cmake_parse_arguments(arg "OPTIMIZED_TESTS;SINGLE_TEST;WAITING;WARM_TESTS;TORCH" "COST"
    "DEPS;PCH;TEST_DEPS;TEST_SOURCES;NOT_FUZZED;FOLDERS" ${ARGN})
  set(patterns *.cpp)
  foreach(folder ${arg_FOLDERS})
    list(APPEND patterns ${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(APPEND tests ${arg_TEST_SOURCES})
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|main)\\.cpp$")
  if(NEREID_FUZZ)
    list(TRANSFORM arg_NOT_FUZZED PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${arg_NOT_FUZZED})
  endif()

  set(precompiled nereid_precompiled)
  if(arg_TORCH)
    set(precompiled nereid_precompiled_torch)
  endif()
  set(precompiled_test ${precompiled}_test)
  if(arg_WAITING)
    set(precompiled nereid_precompiled_waiting)
  endif()

  if(sources)
    add_library(nereid_${name} STATIC ${sources})
    target_include_directories(nereid_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(nereid_${name} PUBLIC ${arg_DEPS})
    if(name IN_LIST NEREID_SINGLE_FILES)
      set_target_properties(nereid_${name} PROPERTIES UNITY_BUILD OFF)
    endif()
    if(arg_WAITING)
      target_link_libraries(nereid_${name} PRIVATE nereid_waiting_flags)
    endif()
    if(arg_PCH)
      target_precompile_headers(nereid_${name} PRIVATE ${arg_PCH})
      set_target_properties(nereid_${name} PROPERTIES NEREID_PRECOMPILED nereid_${name})
    else()
      target_precompile_headers(nereid_${name} REUSE_FROM ${precompiled})
      set_target_properties(nereid_${name} PROPERTIES NEREID_PRECOMPILED ${precompiled})
    endif()
  else()
    add_library(nereid_${name} INTERFACE)
    target_include_directories(nereid_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(nereid_${name} INTERFACE ${arg_DEPS})
  endif()

  if(tests AND NOT NEREID_FUZZ)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE nereid_${name} ${arg_TEST_DEPS} GTest::gtest GTest::gmock
      GTest::gtest_main)
    target_include_directories(${name}_test PRIVATE ${CMAKE_SOURCE_DIR})  # tests/support
    target_compile_definitions(${name}_test PRIVATE NEREID_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    if(name IN_LIST NEREID_SINGLE_FILES)
      set_target_properties(${name}_test PROPERTIES UNITY_BUILD OFF)
    endif()
    if(NOT arg_OPTIMIZED_TESTS)
      target_link_libraries(${name}_test PRIVATE nereid_test_flags)
      target_precompile_headers(${name}_test REUSE_FROM ${precompiled_test})
    endif()
    if(arg_TORCH OR arg_SINGLE_TEST)
      if(NOT arg_COST)
        set(arg_COST 20)
      endif()
      add_test(NAME ${name}_test COMMAND ${name}_test)
      set_tests_properties(${name}_test PROPERTIES TIMEOUT 1800 LABELS ${name} COST ${arg_COST})
      if(arg_TORCH)  # large pages, and freed memory is kept, as workers do: else half the time is page faults
        set(tunables hugetlb=1 mmap_threshold=1073741824 trim_threshold=1073741824)
        list(TRANSFORM tunables PREPEND glibc.malloc.)
        list(JOIN tunables ":" tunables)
        set_property(TEST ${name}_test PROPERTY ENVIRONMENT GLIBC_TUNABLES=${tunables})
      endif()
    else()
      include(GoogleTest)
      set(properties)
      if(arg_WARM_TESTS)
        set(properties ENVIRONMENT NEREID_KEEP_WARM=60)
      endif()
      if(arg_COST)
        list(APPEND properties COST ${arg_COST})
      endif()
      gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 1800
        LABELS ${name} ${properties})
    endif()
  endif()

  if(NEREID_FUZZ)
    foreach(source ${fuzzers})
      get_filename_component(target ${source} NAME_WE)
      nereid_program(${target} ${name} ${source})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# nereid_test_program(NAME FOLDER SOURCE ...): a test that is a program of its own, with libtorch.
function(nereid_test_program name folder)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})  # tests/support
  # GTest for its flags: as what was precompiled
  target_link_libraries(${name} PRIVATE nereid_${folder} nereid_test_flags GTest::gtest)
  target_precompile_headers(${name} REUSE_FROM nereid_precompiled_torch_test)
endfunction()

# nereid_program(NAME FOLDER SOURCE ...): a program made of one folder's library, with that folder's
# precompiled header.
function(nereid_program name folder)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE nereid_${folder})
  get_target_property(precompiled nereid_${folder} NEREID_PRECOMPILED)
  target_precompile_headers(${name} REUSE_FROM ${precompiled})
  target_compile_options(${name} PRIVATE -fPIC)  # as what was precompiled
endfunction()

# nereid_embedded(FOLDER FILE ...): files of this folder as string literals that the folder's library
# includes: page.html of src/nereid/serve is "nereid/serve/page.html.inc".
function(nereid_embedded folder)
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} NEREID_EMBEDDED)
    file(RELATIVE_PATH place ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    configure_file(${CMAKE_SOURCE_DIR}/cmake/embedded.inc.in ${CMAKE_BINARY_DIR}/embedded/${place}.inc @ONLY)
  endforeach()
  target_include_directories(nereid_${folder} PRIVATE ${CMAKE_BINARY_DIR}/embedded)
endfunction()
