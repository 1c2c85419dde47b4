"""What `nereid.optimize` returns, with a plan that has no kernels: its check before a call is the whole
one."""

import nereid
from nereid._optimize import call, plan


def guarded(module, *args, **kwargs):
    """An Optimized for these arguments. Nothing is judged; it cannot be called."""
    held = plan.Plan()
    bound = call.Call(module).bind(args, kwargs)
    settings = plan.Settings(1, "ieee", {})
    held.take(plan.exported_module(module, call.Call(module), bound, settings), bound)
    held.source, held.reason = "", None
    return nereid.Optimized(module, held, settings)
