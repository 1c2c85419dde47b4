// The Python class PlanRunner.
#pragma once

#include <Python.h>

namespace nereid::python {

// A new reference; nullptr: a Python error.
PyObject* make_plan_runner_type();

}  // namespace nereid::python
