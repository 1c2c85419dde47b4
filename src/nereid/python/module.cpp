// The extension `nereid._native`.

#include <Python.h>

#include "nereid/python/call_guard_type.h"
#include "nereid/python/plan_runner_type.h"

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_native",
                          "Native parts of nereid.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

// Takes the reference to the type over.
bool add(PyObject* module, const char* name, PyObject* type) {
  if (type != nullptr && PyModule_AddObject(module, name, type) == 0) return true;
  Py_XDECREF(type);
  return false;
}

}  // namespace

PyMODINIT_FUNC PyInit__native() {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  if (add(module, "CallGuard", nereid::python::make_call_guard_type()) &&
      add(module, "PlanRunner", nereid::python::make_plan_runner_type()))
    return module;
  Py_DECREF(module);
  return nullptr;
}
