#include "nereid/python/plan_runner.h"

#include <pthread.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "nereid/python/call_guard_type.h"
#include "nereid/python/reference.h"

namespace nereid::python {
namespace {

// Threads and contexts of the driver do not survive a fork.
std::atomic<unsigned> g_forks = 0;

unsigned forks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { ++g_forks; });
  (void)watched;
  return g_forks;
}

// The tensors of one call.
class Tensors {
 public:
  explicit Tensors(size_t count) { found_.reserve(count), owned_.reserve(count); }
  ~Tensors() {
    for (PyObject* one : owned_) Py_DECREF(one);
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // Takes a reference over.
  void add(PyObject* tensor) {
    owned_.push_back(tensor);
    found_.push_back(tensor);
  }
  PyObject* operator[](Py_ssize_t index) const { return found_[static_cast<size_t>(index)]; }
  size_t size() const { return found_.size(); }

 private:
  std::vector<PyObject*> found_, owned_;
};

// 1; 0 where the call is left to Python; -1: a Python error.
int find_given(const PlanRunner& runner, PyObject* arguments, Tensors& tensors) {
  for (const TensorPlace& place : runner.tensors) {
    PyObject* tensor = nullptr;
    if (place.kind == TensorPlace::Kind::kMade) continue;
    if (place.kind == TensorPlace::Kind::kArgument)
      tensor = PyTuple_GetItem(arguments, place.index);
    else
      tensor = PyDict_GetItemWithError(place.mapping, place.key);
    if (tensor == nullptr) return PyErr_Occurred() != nullptr ? -1 : 0;
    tensors.add(Py_NewRef(tensor));
    long device = 0;
    if (runner.access->device(tensor, &device) != 1) return -1;
    if (device != runner.device_index) return 0;
  }
  for (const auto& [first, second] : runner.same)
    if (tensors[first] != tensors[second]) return 0;
  return 1;
}

// Places of memory that is made follow all others.
int make_memory(const PlanRunner& runner, Tensors& tensors) {
  for (size_t i = tensors.size(); i < runner.tensors.size(); ++i) {
    PyObject* made = PyObject_CallObject(runner.tensors[i].mapping, runner.tensors[i].key);
    if (made == nullptr) return -1;
    tensors.add(made);
  }
  return 1;
}

int find_addresses(const PlanRunner& runner, const Tensors& tensors, std::vector<uint64_t>& addresses) {
  uint64_t all = 0;
  for (const Py_ssize_t slot : runner.slots) {
    uint64_t address = 0;
    if (runner.access->address(tensors[slot], &address) != 1) return -1;
    addresses.push_back(address);
    all |= address;
  }
  return (all & 15) == 0 ? 1 : 0;  // Triton compiles other code for other pointers
}

int is_current_device(const PlanRunner& runner) {
  if (runner.current_device == Py_None) return 1;
  const Reference now(PyObject_CallNoArgs(runner.current_device));
  if (now.get() == nullptr) return -1;
  return PyObject_RichCompareBool(now.get(), runner.device, Py_EQ);
}

bool captures(const CudaDriver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// A graph where there is one, or is to be one; else empty. Called with the interpreter's lock, which it gives
// up while a graph is made.
std::shared_ptr<Graph> graph_for(PlanRunner& runner, const std::vector<uint64_t>& addresses) {
  if (std::shared_ptr<Graph> found = runner.graphs->find(addresses)) return found;
  if (!runner.graphs->wants(addresses)) return nullptr;
  CUgraphExec made = nullptr;
  PyThreadState* state = PyEval_SaveThread();
  const CUresult code = runner.launches.instantiate(*runner.driver, addresses.data(), &made);
  PyEval_RestoreThread(state);
  if (code != CUDA_SUCCESS) {
    runner.graphs->failed();
    return nullptr;
  }
  auto graph = std::make_shared<Graph>(runner.driver, made);
  runner.graphs->add(addresses, graph);
  return graph;
}

// Queues the kernels. 1; 0 where no context is current; -1: a Python error.
int launch(PlanRunner& runner, CUstream stream, const std::vector<uint64_t>& addresses) {
  if (runner.graphs->most() > 0 && !captures(*runner.driver, stream)) {
    if (const std::shared_ptr<Graph> graph = graph_for(runner, addresses)) {
      PyThreadState* state = PyEval_SaveThread();
      const CUresult code = graph->launch(stream);
      PyEval_RestoreThread(state);
      if (code == CUDA_SUCCESS) {
        ++runner.replayed;
        return 1;
      }
      runner.graphs->remove(graph);
      runner.graphs->failed();
    }
  }
  PyThreadState* state = PyEval_SaveThread();
  const CUresult code = runner.launches.launch(*runner.driver, stream, addresses.data());
  PyEval_RestoreThread(state);
  if (code == CUDA_ERROR_INVALID_CONTEXT) return 0;
  if (code != CUDA_SUCCESS) {
    PyErr_Format(PyExc_RuntimeError, "%s at a kernel launch", runner.driver->describe(code).c_str());
    return -1;
  }
  ++runner.launched;
  return 1;
}

PyObject* answer_of(const PlanRunner& runner, const Answer& answer, const Tensors& tensors,
                    PyObject* arguments);

// The items as a new tuple.
PyObject* items_of(const PlanRunner& runner, const Answer& answer, const Tensors& tensors,
                   PyObject* arguments) {
  Reference items(PyTuple_New(Py_ssize_t(answer.items.size())));
  for (size_t i = 0; items.get() != nullptr && i < answer.items.size(); ++i) {
    PyObject* item = answer_of(runner, answer.items[i], tensors, arguments);
    if (item == nullptr || PyTuple_SetItem(items.get(), Py_ssize_t(i), item) != 0) return nullptr;
  }
  return items.release();
}

PyObject* dictionary_of(const Answer& answer, PyObject* items) {
  Reference made(PyDict_New());
  for (size_t i = 0; made.get() != nullptr && i < answer.keys.size(); ++i)
    if (PyDict_SetItem(made.get(), answer.keys[i], PyTuple_GetItem(items, Py_ssize_t(i))) != 0)
      return nullptr;
  return made.release();
}

PyObject* answer_of(const PlanRunner& runner, const Answer& answer, const Tensors& tensors,
                    PyObject* arguments) {
  switch (answer.kind) {
    case Answer::Kind::kTensor:
      return Py_NewRef(tensors[answer.tensor]);
    case Answer::Kind::kConstant:
      return Py_NewRef(answer.value);
    case Answer::Kind::kView:
      return PyObject_CallFunctionObjArgs(runner.as_strided, tensors[answer.tensor],
                                          PyTuple_GetItem(answer.value, 0), PyTuple_GetItem(answer.value, 1),
                                          PyTuple_GetItem(answer.value, 2), nullptr);
    default:
      break;
  }
  Reference items(items_of(runner, answer, tensors, arguments));
  if (items.get() == nullptr || answer.kind == Answer::Kind::kTuple) return items.release();
  if (answer.kind == Answer::Kind::kList) return PySequence_List(items.get());
  if (answer.kind == Answer::Kind::kDict) return dictionary_of(answer, items.get());
  return PyObject_CallFunctionObjArgs(answer.value, items.get(), arguments, nullptr);
}

CUstream stream_of(const PlanRunner& runner) {
  const Reference stream(PyObject_CallFunctionObjArgs(runner.current_stream, runner.device, nullptr));
  return stream.get() == nullptr ? nullptr : static_cast<CUstream>(PyLong_AsVoidPtr(stream.get()));
}

// -- how it is filled ---------------------------------------------------------------------------------------

bool refuse(const char* text) {
  if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ValueError, text);
  return false;
}

// A place is ("argument", index), ("state", mapping, key) or ("made", function, arguments), these last.
bool fill_place(PyObject* text, std::vector<TensorPlace>& places) {
  const char* kind = nullptr;
  PyObject *first = nullptr, *second = nullptr;
  if (PyArg_ParseTuple(text, "sO|O", &kind, &first, &second) == 0) return false;
  const std::string_view name = kind;
  using enum TensorPlace::Kind;
  TensorPlace place{.kind = name == "argument" ? kArgument : name == "state" ? kState : kMade};
  place.mapping = first, place.key = second;
  if (place.kind == kArgument) place.index = PyLong_AsSsize_t(first);
  const bool right = place.kind == kArgument ? place.index >= 0
                     : second == nullptr     ? false
                     : place.kind == kState  ? PyDict_CheckExact(first) != 0
                                             : PyTuple_CheckExact(second) != 0;
  if (!right || (place.kind != kMade && !places.empty() && places.back().kind == kMade))
    return refuse("expected an argument, a state or memory that is made, in this order");
  places.push_back(place);
  return true;
}

// An answer is ("tensor", place), ("view", place, arguments), ("constant", value), ("tuple", items),
// ("list", items), ("dict", items, keys), ("finished", items, function).
bool fill_answer(PyObject* text, Py_ssize_t places, Answer& answer) {
  const char* kind = nullptr;
  PyObject *first = nullptr, *second = nullptr;
  if (!PyTuple_Check(text) || PyArg_ParseTuple(text, "sO|O", &kind, &first, &second) == 0)
    return refuse("expected an answer");
  const std::string_view name = kind;
  using enum Answer::Kind;
  answer.kind = name == "tensor"     ? kTensor
                : name == "view"     ? kView
                : name == "constant" ? kConstant
                : name == "tuple"    ? kTuple
                : name == "list"     ? kList
                : name == "dict"     ? kDict
                                     : kFinished;
  answer.value = answer.kind == kConstant ? first : second;
  if (answer.kind == kConstant) return true;
  if (answer.kind == kTensor || answer.kind == kView) {
    answer.tensor = PyLong_AsSsize_t(first);
    if (PyErr_Occurred() != nullptr || answer.tensor < 0 || answer.tensor >= places)
      return refuse("an answer's tensor is out of range");
    if (answer.kind == kView && (second == nullptr || !PyTuple_Check(second) || PyTuple_Size(second) != 3))
      return refuse("expected sizes, strides and an offset of a view");
    return true;
  }
  const bool keyed = answer.kind == kDict;
  if (!PyTuple_Check(first) || ((keyed || answer.kind == kFinished) && second == nullptr) ||
      (keyed && (!PyTuple_Check(second) || PyTuple_Size(second) != PyTuple_Size(first))))
    return refuse("expected items of an answer");
  for (Py_ssize_t i = 0; i < PyTuple_Size(first); ++i) {
    if (keyed) answer.keys.push_back(PyTuple_GetItem(second, i));
    if (!fill_answer(PyTuple_GetItem(first, i), places, answer.items.emplace_back())) return false;
  }
  return true;
}

// A launch is (function, (x, y, z), threads, shared bytes, cooperative, ((value, slot), ...)).
bool fill_launch(PyObject* text, Py_ssize_t slots, std::vector<KernelLaunch>& launches) {
  KernelLaunch launch;
  unsigned long long function = 0;
  int cooperative = 0;
  PyObject* parameters = nullptr;
  if (PyArg_ParseTuple(text, "K(III)IIpO!", &function, &launch.grid[0], &launch.grid[1], &launch.grid[2],
                       &launch.threads, &launch.shared_bytes, &cooperative, &PyTuple_Type, &parameters) == 0)
    return false;
  launch.function = reinterpret_cast<CUfunction>(function);
  launch.cooperative = cooperative != 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(parameters); ++i) {
    unsigned long long value = 0;
    Py_ssize_t slot = -1;
    if (PyArg_ParseTuple(PyTuple_GetItem(parameters, i), "Kn", &value, &slot) == 0) return false;
    if (slot < -1 || slot >= slots) return refuse("a parameter's slot is out of range");
    launch.parameters.push_back({.value = value, .slot = slot});
  }
  launches.push_back(std::move(launch));
  return true;
}

// Calls `take` with each item of the tuple under a name.
template <typename Take>
bool each(PyObject* description, const char* name, Take take) {
  PyObject* items = PyDict_GetItemString(description, name);
  if (items == nullptr || !PyTuple_Check(items)) {
    PyErr_Format(PyExc_TypeError, "expected a tuple of %s", name);
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(items); ++i)
    if (PyObject* one = PyTuple_GetItem(items, i); !take(one)) return false;
  return true;
}

// A new list of all that is described but tensors of the recorded call, which are not kept alive.
PyObject* kept_of(PyObject* description) {
  const Reference kept(PyDict_Copy(description));
  if (kept.get() == nullptr) return nullptr;
  for (const char* name : {"samples", "sample"})
    if (PyDict_DelItemString(kept.get(), name) != 0) return nullptr;
  return PyDict_Values(kept.get());
}

bool fill_functions(PlanRunner& runner, PyObject* functions) {
  PyObject *data_ptr = nullptr, *get_device = nullptr;
  const char *driver = nullptr, *torch = nullptr;
  Py_ssize_t max_graphs = 0;
  if (functions == nullptr || !PyTuple_Check(functions) ||
      PyArg_ParseTuple(functions, "ssOOOOOOOOn", &driver, &torch, &runner.watch, &runner.current_device,
                       &runner.device, &runner.current_stream, &runner.as_strided, &data_ptr, &get_device,
                       &runner.again, &max_graphs) == 0)
    return refuse("expected functions");
  if (guard_in(runner.watch) == nullptr) return refuse("expected a CallGuard");
  std::string why;
  const std::optional<CudaDriver> opened = CudaDriver::open(driver, why);
  if (!opened.has_value()) return refuse(why.c_str());
  runner.driver = std::make_shared<const CudaDriver>(*opened);
  runner.access = std::make_unique<TensorAccess>(torch, data_ptr, get_device);
  runner.graphs = std::make_unique<GraphCache>(max_graphs < 0 ? 0 : static_cast<size_t>(max_graphs));
  return true;
}

}  // namespace

bool fill(PlanRunner& runner, PyObject* description) {
  runner.forks = forks();
  runner.held = kept_of(description);
  if (runner.held == nullptr) return false;
  if (!fill_functions(runner, PyDict_GetItemString(description, "functions"))) return false;
  std::vector<KernelLaunch> launches;
  const auto index = [&](PyObject* one, Py_ssize_t* into) {
    *into = PyLong_AsSsize_t(one);
    return PyErr_Occurred() == nullptr && *into >= 0 && *into < Py_ssize_t(runner.tensors.size());
  };
  const bool filled =
      each(description, "tensors", [&](PyObject* one) { return fill_place(one, runner.tensors); }) &&
      each(description, "slots",
           [&](PyObject* one) {
             return index(one, &runner.slots.emplace_back()) || refuse("a slot's tensor is out of range");
           }) &&
      each(description, "same",
           [&](PyObject* one) {
             auto& [first, second] = runner.same.emplace_back();
             return (PyTuple_Check(one) && PyTuple_Size(one) == 2 && index(PyTuple_GetItem(one, 0), &first) &&
                     index(PyTuple_GetItem(one, 1), &second)) ||
                    refuse("expected two tensors that are one");
           }) &&
      each(description, "launches",
           [&](PyObject* one) { return fill_launch(one, Py_ssize_t(runner.slots.size()), launches); }) &&
      each(description, "samples", [&](PyObject* one) {
        runner.access->try_on(one);
        return true;
      });
  PyObject* answer = PyDict_GetItemString(description, "answer");
  if (!filled || answer == nullptr || !fill_answer(answer, Py_ssize_t(runner.tensors.size()), runner.answer))
    return refuse("expected an answer");
  PyObject* sample = PyDict_GetItemString(description, "sample");
  if (sample == nullptr || runner.access->device(sample, &runner.device_index) != 1)
    return refuse("expected a tensor of the device");
  runner.launches = LaunchSequence(launches);
  return true;
}

void abandon_after_fork(PlanRunner& runner) {
  if (runner.graphs == nullptr || runner.forks == g_forks) return;
  [[maybe_unused]] const auto* abandoned = runner.graphs.release();
}

PyObject* run(PlanRunner& runner, PyObject* args, PyObject* kwargs) {
  if (runner.guard == nullptr) return Py_NewRef(runner.again);
  const Reference guard(Py_NewRef(runner.guard));  // a form that is added may replace it
  const Reference arguments(matched(*guard_in(guard.get()), args, kwargs));
  if (arguments.get() == nullptr) return nullptr;
  return arguments.get() == Py_None ? Py_NewRef(runner.again) : run_checked(runner, arguments.get());
}

PyObject* run_checked(PlanRunner& runner, PyObject* arguments) {
  if (runner.forks != g_forks) return Py_NewRef(runner.again);
  int right = unchanged(*guard_in(runner.watch));
  if (right == 1) right = is_current_device(runner);
  Tensors tensors(runner.tensors.size());
  if (right == 1) right = find_given(runner, arguments, tensors);
  std::vector<uint64_t> addresses;
  addresses.reserve(runner.slots.size());
  CUstream stream = nullptr;
  if (right == 1) right = make_memory(runner, tensors);
  if (right == 1) right = find_addresses(runner, tensors, addresses);
  if (right == 1) stream = stream_of(runner);
  if (right == 1 && PyErr_Occurred() != nullptr) right = -1;
  if (right == 1) right = launch(runner, stream, addresses);
  if (right == 1) return answer_of(runner, runner.answer, tensors, arguments);
  return right < 0 ? nullptr : Py_NewRef(runner.again);
}

}  // namespace nereid::python
