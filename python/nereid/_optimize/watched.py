"""What of a module forward may have read, and whether it is still as it was."""

import torch

_SIMPLE = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_LONGEST = 20000  # attributes of a module's configuration that are compared before a call

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs", "_is_full_backward_hook", "call_super_init", "_compiled_call_impl", *_HOOKS,
}  # fmt: skip


def unwatched(module):
    """Why the module cannot be exported as it is; None where it can."""
    for name, part in module.named_modules():
        if name and any(getattr(part, hooks) for hooks in _HOOKS):
            return f"module {name} has hooks"
        if type(part).__getattribute__ is not object.__getattribute__ or isinstance(
            part, torch.jit.ScriptModule
        ):
            return f"{f'module {name}' if name else 'the module'} of type {type(part).__name__}: its attributes cannot be watched"
    for kind, values in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for name, value in values:
            if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                return f"{kind} {name} of type {type(value).__name__}"
    return None


class Watched:
    """What of a module's Python state forward may have read, and a fast comparison with what it is now."""

    def __init__(self, module):
        self._entries, self._sizes, self._versions = [], [], []
        self._seen = set()
        self._modules = [
            (name, part, part._modules, tuple(part._modules.items())) for name, part in module.named_modules()
        ]
        self.too_large = False
        for name, part in module.named_modules():
            own = vars(part)
            self._sizes.append((name, own, len(own)))
            for key, value in own.items():
                if key not in _OWN:
                    self._watch(own, key, value, f"{name}.{key}" if name else key, 0)

    def _watch(self, holder, key, value, where, depth):
        if len(self._entries) > _LONGEST:
            self.too_large = True
            return
        self._entries.append((holder, key, value, where))
        if isinstance(value, torch.Tensor):
            self._versions.append((value, value._version, where))
            return
        if (
            isinstance(value, _SIMPLE)
            or isinstance(value, (torch.nn.Module, type))
            or callable(value)
            or id(value) in self._seen
            or depth > 4
        ):
            return
        self._seen.add(id(value))
        if isinstance(value, dict):
            for inner, item in value.items():
                self._watch(value, inner, item, f"{where}[{inner!r}]", depth + 1)
            self._sizes.append((where, value, len(value)))
        elif isinstance(value, (list, tuple)):
            for inner, item in enumerate(value):
                self._watch(value, inner, item, f"{where}[{inner}]", depth + 1)
            self._sizes.append((where, value, len(value)))
        elif isinstance(getattr(value, "__dict__", None), dict):
            own = vars(value)
            self._sizes.append((where, own, len(own)))
            for inner, item in own.items():
                self._watch(own, inner, item, f"{where}.{inner}", depth + 1)

    def differs(self):
        """What is another than it was, as a sentence; None where all is the same."""
        for name, part, modules, items in self._modules:
            if (
                part._modules is not modules
                or len(modules) != len(items)
                or any(modules.get(key) is not value for key, value in items)
            ):
                return f"{f'module {name}' if name else 'the module'}: expected the submodules that it had, got others"
            if name and (
                part._forward_hooks
                or part._forward_pre_hooks
                or part._backward_hooks
                or part._backward_pre_hooks
            ):
                return f"module {name}: expected no hooks, got some"
        for where, holder, size in self._sizes:
            if len(holder) != size:
                return f"{where or 'the module'}: expected {size} attributes or items, got {len(holder)}"
        for holder, key, value, where in self._entries:
            try:
                now = holder[key]
            except (KeyError, IndexError):
                return f"attribute {where}: expected {value!r:.80}, got none"
            if now is not value and not (
                isinstance(value, _SIMPLE)
                and type(now) is type(value)
                and (now == value or now != now and value != value)
            ):
                return f"attribute {where}: expected {value!r:.80}, got {now!r:.80}"
        for tensor, version, where in self._versions:
            if tensor._version != version:
                return f"attribute {where}: expected the tensor's values as they were, got changed ones"
        return None
