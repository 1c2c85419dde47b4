// The Python class CallGuard, which holds a Guard.
#pragma once

#include <Python.h>

#include "nereid/python/call_guard.h"

namespace nereid::python {

// A new reference; nullptr: a Python error. Once in a process.
PyObject* make_call_guard_type();

// Of a CallGuard; nullptr of any other object.
Guard* guard_in(PyObject* object);

}  // namespace nereid::python
