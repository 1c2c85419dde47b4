"""What of a module that `nereid.optimize` returns is the original's."""

SHARED = (
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_forward_hooks",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
LEFT = ("training", "_is_full_backward_hook")  # attributes of a new nn.Module that are the original's, too

# What Python looks up in the class: given where the original's class has it.
SPECIAL = (
    "__len__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__next__", "__reversed__",
    "__contains__", "__bool__", "__int__", "__float__", "__index__", "__enter__", "__exit__", "__add__",
    "__radd__", "__iadd__", "__mul__", "__rmul__", "__imul__", "__matmul__", "__or__", "__and__", "__sub__",
    "__lt__", "__le__", "__gt__", "__ge__",
)  # fmt: skip


def special_method(name):
    def method(self, *args):
        original = self._nereid_original
        result = getattr(original, name)(*args)
        return self if result is original else result

    return method
