# Warnings, ccache, linker and sanitizers, for every target.
add_compile_options(-Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ looks for what it may forget whenever it has twice what it had, a fifteenth of its time; the largest
  # of our files end at 1.3 GB without.
  add_compile_options(--param=ggc-min-heapsize=4194304)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Precompiled headers are cached only when time stamps may be ignored.
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

if(NEREID_SANITIZE)
  # g++'s warning of what may be uninitialised is wrong about instrumented code; that is what the build is
  # for.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=address,undefined)
endif()
if(NEREID_FUZZ)
  # The brief run of `make test` looks for broken memory alone: undefined behaviour costs a quarter of its
  # build.
  set(what $<IF:$<BOOL:${NEREID_FUZZ_UNDEFINED}>,address$<COMMA>undefined,address>)
  add_compile_options(-fsanitize=fuzzer-no-link,${what} -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${what})
endif()

# The built program finds its own libraries in its folder when it travels in a wheel, and so do those
# libraries (libcurl's own, for one): what is found by RPATH may itself look there, what is found by RUNPATH
# may not.
add_link_options(LINKER:--disable-new-dtags)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
