// A call of a prepared plan, from the check of its arguments to its answer.
// python/nereid/_optimize/prepared.py builds it from a call that was recorded.
//
// It does a call where that is as an earlier one (call_guard.h), or leaves it to Python. What kernels write
// to is memory that torch's allocator gives to this call alone, on the current stream.
#pragma once

#include <Python.h>

#include <memory>
#include <utility>
#include <vector>

#include "nereid/python/call_guard.h"
#include "nereid/python/cuda_driver.h"
#include "nereid/python/graph_cache.h"
#include "nereid/python/launch_sequence.h"
#include "nereid/python/tensor_access.h"

namespace nereid::python {

// A tensor of a call.
struct TensorPlace {
  enum class Kind { kArgument, kState, kMade };
  Kind kind;
  Py_ssize_t index = 0;  // kArgument: among the call's tensors
  // kState: mapping[key]; kMade: function(*args), memory for this call. Borrowed, as all pointers here.
  PyObject *mapping = nullptr, *key = nullptr;
};

// The answer of a call, by its tensors.
struct Answer {
  enum class Kind { kTensor, kView, kConstant, kTuple, kList, kDict, kFinished };
  Kind kind;
  Py_ssize_t tensor = 0;      // kTensor, kView
  PyObject* value = nullptr;  // kConstant; kView: as_strided's arguments; kFinished: a function of the items
                              // and of the call's tensors, each a tuple
  std::vector<PyObject*> keys;  // kDict
  std::vector<Answer> items;
};

// Pointers to Python's objects are borrowed from `held`.
struct PlanRunner {
  std::shared_ptr<const CudaDriver> driver;
  LaunchSequence launches;
  std::vector<TensorPlace> tensors;
  std::vector<Py_ssize_t> slots;                        // of each address that kernels are given its tensor
  std::vector<std::pair<Py_ssize_t, Py_ssize_t>> same;  // tensors that are one object
  Answer answer;
  std::unique_ptr<TensorAccess> access;
  std::unique_ptr<GraphCache> graphs;
  PyObject* watch = nullptr;           // a CallGuard: of Triton's state
  PyObject* current_device = nullptr;  // function without arguments, or None
  PyObject* current_stream = nullptr;  // function of the device
  PyObject* as_strided = nullptr;      // torch.Tensor.as_strided
  PyObject* device = nullptr;          // the device that the kernels were compiled for
  long device_index = 0;
  PyObject* again = nullptr;                      // the answer where Python has to do the call
  PyObject* held = nullptr;                       // a list that owns all of these
  PyObject* guard = nullptr;                      // a CallGuard, owned: of the module and of arguments
  unsigned forks = 0;                             // of this process before it was made
  unsigned long long launched = 0, replayed = 0;  // calls
};

// Fills a runner from a dictionary (prepared.py). False: a Python error is set.
bool fill(PlanRunner& runner, PyObject* description);

// In a forked process: the driver is not called for what is left, which is lost.
void abandon_after_fork(PlanRunner& runner);

// The call's answer, a new reference; `again` where it is left to Python; nullptr: a Python error.
PyObject* run(PlanRunner& runner, PyObject* args, PyObject* kwargs);

// The same for a call that has been checked, by its tensors: a tuple.
PyObject* run_checked(PlanRunner& runner, PyObject* arguments);

}  // namespace nereid::python
