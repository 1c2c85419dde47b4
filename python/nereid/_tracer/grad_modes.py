"""While gradients are off, autograd's dispatch keys are excluded, so that the recorder sees composite
operators whole.

With gradients on (a module that differentiates inside forward) the keys come back and composites are taken
apart by C++ before the recorder sees them. `torch.func` brings its own keys along.
"""

import torch
from torch._C import DispatchKey

_KEYS = (DispatchKey.AutogradFunctionality,)
_set_grad_enabled = torch._C._set_grad_enabled


def exclude(excluded):
    for key in _KEYS:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, excluded)


def set_grad_enabled(mode):
    _set_grad_enabled(mode)
    exclude(not mode)


def install():
    torch._C._set_grad_enabled = set_grad_enabled


class UserKeys:
    """The dispatch keys that a module's own calls see. A dispatch mode's handler runs with every key above
    Python's excluded; what it takes apart there must meet autocast, lazy conjugation and view tracking as the
    module's own calls do."""

    def __init__(self):
        self._include = torch._C._dispatch_tls_local_include_set()
        self._exclude = torch._C._dispatch_tls_local_exclude_set()
        self._made = {}

    def guard(self):
        state = (
            torch.is_autocast_enabled("cuda"),
            torch.is_autocast_enabled("cpu"),
            torch.is_inference_mode_enabled(),
            torch.is_grad_enabled(),
        )
        keys = self._made.get(state)
        if keys is None:
            keys = self._made[state] = self._keys(*state)
        return torch._C._ForceDispatchKeyGuard(*keys)

    def _keys(self, autocast_cuda, autocast_cpu, inference, grad):
        include, exclude = self._include, self._exclude
        for on, key in (
            (autocast_cuda, DispatchKey.AutocastCUDA),
            (autocast_cpu, DispatchKey.AutocastCPU),
            (grad, DispatchKey.AutogradFunctionality),
        ):
            exclude = exclude.remove(key) if on else exclude.add(key)
        if inference:
            include = include.remove(DispatchKey.ADInplaceOrView)
            exclude = exclude.add(DispatchKey.ADInplaceOrView)
        return include, exclude
