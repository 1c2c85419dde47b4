# libtorch from the pinned `torch` wheel, as the imported target `torch::cpu`.
# Its CUDA half is `torch::cuda`: only programs that a GPU's machine starts link it.
execute_process(
  COMMAND ${NEREID_PYTHON} -c
  "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
  OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_missing)
if(torch_missing)
  message(FATAL_ERROR "no torch in ${NEREID_PYTHON}: run 'make setup' first")
endif()

add_library(torch_cpu INTERFACE)
add_library(torch::cpu ALIAS torch_cpu)
target_include_directories(torch_cpu SYSTEM INTERFACE
  ${torch_dir}/include ${torch_dir}/include/torch/csrc/api/include)
target_compile_definitions(torch_cpu INTERFACE AT_PER_OPERATOR_HEADERS)
# The wheel's headers hide the system's fmt by a newer one of their own, which no library holds but this
# one.
add_library(nereid_torch_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/torch_fmt.cpp)
target_include_directories(nereid_torch_fmt SYSTEM PRIVATE ${torch_dir}/include)
# Programs start without operators that they never run: this function takes the place of libtorch's.
add_library(nereid_torch_start STATIC ${CMAKE_SOURCE_DIR}/cmake/torch_start.cpp)
target_include_directories(nereid_torch_start SYSTEM PRIVATE ${torch_dir}/include)
target_link_options(torch_cpu INTERFACE
  LINKER:-u,_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE)
target_link_directories(torch_cpu INTERFACE ${torch_dir}/lib)
target_link_libraries(torch_cpu INTERFACE nereid_torch_fmt nereid_torch_start ${torch_dir}/lib/libtorch_cpu.so
  ${torch_dir}/lib/libc10.so)
target_link_options(torch_cpu INTERFACE "LINKER:--allow-shlib-undefined")
list(APPEND CMAKE_BUILD_RPATH "${torch_dir}/lib")  # an installed program gets it from LD_LIBRARY_PATH

# The CUDA headers that come with that wheel: declarations alone, so that what opens the driver at run time
# can be built where there is no toolkit.
get_filename_component(nvidia_include "${torch_dir}/../nvidia/cu13/include" ABSOLUTE)
add_library(cuda_headers INTERFACE)
add_library(cuda::headers ALIAS cuda_headers)
target_include_directories(cuda_headers SYSTEM INTERFACE ${nvidia_include})

# libtorch with its CUDA half, for the programs that run only where a GPU is. libtorch_cuda.so registers its
# kernels when it is loaded, so it must stay linked although few of its symbols are named.
add_library(torch_with_cuda INTERFACE)
add_library(torch::cuda ALIAS torch_with_cuda)
target_link_libraries(torch_with_cuda INTERFACE torch::cpu cuda::headers
  -Wl,--push-state,--no-as-needed ${torch_dir}/lib/libtorch_cuda.so ${torch_dir}/lib/libc10_cuda.so
  -Wl,--pop-state)
