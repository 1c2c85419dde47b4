"""What a forward leaves under the names of the module's state, and in the tensors that it was given.

A forward may bind the name of a parameter or a buffer to another tensor, or give its tensor other data
(`.data = `). That changes what the next caller finds, though nothing is written to the tensor that the trace
knows. It is recorded as what it amounts to: a copy into that tensor, which then has the name again. Where the
forward returns the tensor that had the name, it returns a copy made before. A note says so, and also what
such a copy cannot express: a name that is gone or has another shape or dtype, and an input that became
another view of its data (`resize_`, `t_`).
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor


class Bindings:
    def __init__(self, recorder):
        self._recorder = recorder
        self._held = {}  # name of a parameter or a buffer -> id of its value
        self._tensors = {}  # name -> the object that had the name
        self._inputs = []  # (path, tensor, id of its value) of the call that runs

    def hold(self, name, tensor, value):
        self._held[name], self._tensors[name] = value, tensor

    def give(self, tensors):
        """The tensors that a forward is called with, by their paths."""
        self._inputs = [(path, tensor, self._recorder.value_of(tensor)) for path, tensor in tensors]

    def name_attributes(self, instance):
        """Names the storages that a module keeps as attributes, and that are no state (self.table = ...)."""
        for prefix, module in instance.named_modules():
            for name, tensor in vars(module).items():
                if type(tensor) is not FakeTensor or tensor.layout is not torch.strided:
                    continue
                path = f"{prefix}.{name}".lstrip(".")
                storage = self._recorder.storage_of(tensor)
                free = storage.role == "temporary" and storage.device == "cuda" and not storage.name
                whole = free and tensor.is_contiguous() and tensor.nbytes == storage.bytes
                if whole and path.replace(".", "").isidentifier():
                    storage.name = path

    def settle(self, instance, returned, replace):
        """Records, after a forward, what became of names and inputs. `returned()` gives the tensors that it
        returned, and `replace(change)` changes each of them."""
        for path, tensor, value in self._inputs:
            if self._recorder.value_of(tensor) != value:
                self._note(f"forward leaves input {path} as another view")
        if isinstance(instance, torch.nn.Module):
            with torch.no_grad():
                self._settle_state(instance, returned, replace)

    def _settle_state(self, instance, returned, replace):
        named = dict(torch.nn.Module.named_parameters(instance, remove_duplicate=False))
        named.update(torch.nn.Module.named_buffers(instance, remove_duplicate=False))
        values = {name: self._value_of(named.get(name)) for name in self._held}
        changed = [name for name, value in self._held.items() if values[name] != value]
        if not changed:
            return
        lost = {self._storage(self._held[name]) for name in changed if values[name] is not None}
        try:
            if lost & {self._storage_of(tensor) for tensor in returned()}:
                replace(lambda tensor: tensor.clone() if self._storage_of(tensor) in lost else tensor)
            kept = {self._storage_of(tensor) for tensor in returned()}
        except RecursionError:
            return  # such an output is refused
        of_state = {self._storage(value) for value in self._held.values()}
        copies = []
        for name in changed:
            old = self._view(self._held[name])
            new = None if values[name] is None else self._view(values[name])
            # A copy into what was returned would change that.
            holds = new is not None and self._storage(self._held[name]) not in kept
            if not holds or new.shape != old.shape or new.dtype != old.dtype:
                self._note(f"forward leaves {name} without the tensor that it had")
                if new is not None:
                    self.hold(name, named[name], values[name])
                continue
            # What another name had may be overwritten by the copies that come before.
            copies.append((name, old, new.clone() if self._storage(values[name]) in of_state else new))
        for name, old, new in copies:
            self._note(f"forward leaves {name} to another tensor")
            old.copy_(new)
            if new.stride() == old.stride():
                self._bind(instance, name, old)
            else:
                self.hold(name, named[name], values[name])

    def _bind(self, instance, name, old):
        """Gives the name back to the tensor that had it."""
        tensor = self._tensors[name]
        if self._value_of(tensor) != self._held[name]:
            tensor.data = old
        path, _, leaf = name.rpartition(".")
        module = instance.get_submodule(path)
        for table in (module._parameters, module._buffers):
            if leaf in table:
                table[leaf] = tensor

    def _note(self, text):
        if text not in self._recorder.notes:
            self._recorder.notes.insert(0, text)

    def _value_of(self, tensor):
        return None if tensor is None else self._recorder.value_of(tensor)

    def _storage(self, value):
        return self._recorder.values[value]["s"]

    def _storage_of(self, tensor):
        value = self._recorder.value_of(tensor)
        return None if value is None else self._storage(value)

    def _view(self, value):
        return self._recorder.view_of(value)
