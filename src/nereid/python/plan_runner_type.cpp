#include "nereid/python/plan_runner_type.h"

#include "nereid/python/call_guard_type.h"
#include "nereid/python/plan_runner.h"

namespace {

using nereid::python::PlanRunner;

struct Runner {
  PyObject_HEAD PlanRunner* runner;
};

PlanRunner& runner_of(PyObject* self) { return *reinterpret_cast<Runner*>(self)->runner; }

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  PyObject* description = nullptr;
  if (PyArg_ParseTuple(args, "O!", &PyDict_Type, &description) == 0) return nullptr;
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  auto* made = new PlanRunner();
  reinterpret_cast<Runner*>(self)->runner = made;
  if (nereid::python::fill(*made, description)) return self;
  Py_DECREF(self);
  return nullptr;
}

// All that refers to Python's objects goes before they do.
int clear(PyObject* self) {
  PlanRunner* runner = reinterpret_cast<Runner*>(self)->runner;
  if (runner == nullptr) return 0;
  PyObject *held = runner->held, *guard = runner->guard;
  nereid::python::abandon_after_fork(*runner);
  *runner = PlanRunner();
  Py_XDECREF(held);
  Py_XDECREF(guard);
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const PlanRunner* runner = reinterpret_cast<Runner*>(self)->runner;
  if (runner == nullptr) return 0;
  Py_VISIT(runner->held);
  Py_VISIT(runner->guard);
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  clear(self);
  delete reinterpret_cast<Runner*>(self)->runner;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(args[0]) || !PyDict_CheckExact(args[1])) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of arguments and a dictionary of those by name");
    return nullptr;
  }
  return nereid::python::run(runner_of(self), args[0], args[1]);
}

PyObject* run_checked(PyObject* self, PyObject* arguments) {
  if (!PyTuple_CheckExact(arguments)) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of tensors");
    return nullptr;
  }
  return nereid::python::run_checked(runner_of(self), arguments);
}

PyObject* follow(PyObject* self, PyObject* guard) {
  if (guard != Py_None && nereid::python::guard_in(guard) == nullptr) {
    PyErr_SetString(PyExc_TypeError, "expected a CallGuard or None");
    return nullptr;
  }
  PlanRunner& runner = runner_of(self);
  PyObject* before = runner.guard;
  runner.guard = guard == Py_None ? nullptr : Py_NewRef(guard);
  Py_XDECREF(before);
  return Py_NewRef(Py_None);
}

PyObject* counts(PyObject* self, void* /*closure*/) {
  const PlanRunner& runner = runner_of(self);
  return Py_BuildValue("KKn", runner.launched, runner.replayed,
                       runner.graphs == nullptr ? Py_ssize_t(0) : Py_ssize_t(runner.graphs->size()));
}

PyObject* direct(PyObject* self, void* /*closure*/) {
  const PlanRunner& runner = runner_of(self);
  return PyBool_FromLong(runner.access != nullptr && runner.access->direct() ? 1 : 0);
}

PyMethodDef methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run)), METH_FASTCALL,
     "run(args, kwargs): the call's answer, or the object that says that Python has to do it."},
    {"run_checked", &run_checked, METH_O, "run_checked(tensors): run() of a call whose check has been done."},
    {"follow", &follow, METH_O, "follow(guard): the CallGuard that later calls have to pass, or None."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef attributes[] = {
    {"counts", &counts, nullptr, "(calls that launched kernels, calls that replayed a graph, graphs)",
     nullptr},
    {"direct", &direct, nullptr, "Whether tensors are read by torch's C functions.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("PlanRunner(description): calls of a prepared plan.")},
                       {Py_tp_new, reinterpret_cast<void*>(&create)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};

PyType_Spec spec = {"nereid._native.PlanRunner", sizeof(Runner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

}  // namespace

namespace nereid::python {

PyObject* make_plan_runner_type() { return PyType_FromSpec(&spec); }

}  // namespace nereid::python
