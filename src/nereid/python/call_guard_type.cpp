#include "nereid/python/call_guard_type.h"

#include "nereid/python/call_guard.h"

namespace {

using nereid::python::Guard;

struct CallGuard {
  PyObject_HEAD Guard* guard;
};

Guard& guard_of(PyObject* self) { return *reinterpret_cast<CallGuard*>(self)->guard; }

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  PyObject* lists = nullptr;
  if (PyArg_ParseTuple(args, "O!", &PyDict_Type, &lists) == 0) return nullptr;
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  auto* made = new Guard();
  reinterpret_cast<CallGuard*>(self)->guard = made;
  if (nereid::python::fill(*made, lists)) return self;
  Py_DECREF(self);
  return nullptr;
}

// All that refers to Python's objects goes before they do.
int clear(PyObject* self) {
  Guard* guard = reinterpret_cast<CallGuard*>(self)->guard;
  if (guard == nullptr) return 0;
  PyObject* held = guard->held;
  *guard = Guard();
  Py_XDECREF(held);
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Guard* guard = reinterpret_cast<CallGuard*>(self)->guard;
  if (guard != nullptr) Py_VISIT(guard->held);
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  clear(self);
  delete reinterpret_cast<CallGuard*>(self)->guard;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// What raises is looked at again in Python, which says why; an interrupt is passed on.
bool left_to_python() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return false;
  PyErr_Clear();
  return true;
}

PyObject* matched(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(args[0]) || !PyDict_CheckExact(args[1])) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of arguments and a dictionary of those by name");
    return nullptr;
  }
  const PyObject* found = nereid::python::matched(guard_of(self), args[0], args[1]);
  if (found == nullptr && left_to_python()) return Py_NewRef(Py_None);
  return const_cast<PyObject*>(found);
}

PyObject* unchanged(PyObject* self, PyObject* /*none*/) {
  const int same = nereid::python::unchanged(guard_of(self));
  if (same < 0 && !left_to_python()) return nullptr;
  return PyBool_FromLong(same == 1 ? 1 : 0);
}

PyObject* add(PyObject* self, PyObject* form) {
  if (!PyTuple_Check(form)) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple");
    return nullptr;
  }
  return nereid::python::add_variant(guard_of(self), form) ? Py_NewRef(Py_None) : nullptr;
}

PyObject* forms(PyObject* self, void* /*closure*/) {
  return PyLong_FromSize_t(guard_of(self).variants.size());
}

PyMethodDef methods[] = {
    {"matched", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&matched)), METH_FASTCALL,
     "matched(args, kwargs): the call's tensors where it is as one of the forms, else None."},
    {"unchanged", &unchanged, METH_NOARGS, "unchanged(): whether all but the arguments is as it was."},
    {"add", &add, METH_O, "add(form): a further form of call."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef attributes[] = {{"forms", &forms, nullptr, "The number of forms of call.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("CallGuard(lists): the check before a call.")},
                       {Py_tp_new, reinterpret_cast<void*>(&create)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};

PyType_Spec spec = {"nereid._native.CallGuard", sizeof(CallGuard), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

PyTypeObject* g_type = nullptr;

}  // namespace

namespace nereid::python {

PyObject* make_call_guard_type() {
  PyObject* type = PyType_FromSpec(&spec);
  g_type = reinterpret_cast<PyTypeObject*>(type);
  return type;
}

Guard* guard_in(PyObject* object) {
  return g_type != nullptr && Py_TYPE(object) == g_type ? &guard_of(object) : nullptr;
}

}  // namespace nereid::python
