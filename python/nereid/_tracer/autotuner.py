"""Triton's autotuner without a clock: every configuration that compiles becomes an alternative of the launch.

What Triton's own autotuner does besides measuring stays: keys, pruning, `pre_hook`s of configurations, the
zeroing of `reset_to_zero` tensors after tuning. Only the question which configuration is fastest is left to
the replay.

The call that tunes runs every configuration many times before the one that is chosen. What the autotuner's
hooks do around such a run (`reset_to_zero`, `restore_value`) is recorded with the launch, in every forward,
and the judge decides whether to repeat it. A key that is tuned outside of `forward` is not tuned in it.
"""

import sys

from triton.compiler.errors import CompilationError
from triton.runtime import autotuner
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources

from . import triton_front_end
from .._task.errors import Untraceable


class Undecided:
    """Stands for the configuration that a clock will choose. It can be printed, and what depends on it cannot
    be traced."""

    def __getattr__(self, name):
        raise Untraceable(
            f"forward depends on which configuration the autotuner chose (.{name}): all are judged, and a"
            " trace holds for one"
        )

    def __repr__(self):
        return "the configuration that is fastest"


def run(self, *args, **kwargs):
    session = triton_front_end.session
    if session is None or session.collecting is not None:
        return _original_run(self, *args, **kwargs)
    self.nargs = dict(zip(self.arg_names, args))
    if len(self.configs) > 1:
        key = tuning_key(self, kwargs)
        configs = _offered(self).get(key)
        first_time = configs is None
        if first_time:
            configs = self.prune_configs(kwargs)
    else:
        key, configs, first_time = None, self.configs, False
    launches, kept, failure, kernel = [], [], None, None
    tunes = len(self.configs) > 1 and _tunes(self, session.recorder, key, first_time)
    runs = []  # of the launches: what the autotuner's hooks do before and after a run
    for config in configs:
        try:
            launch, kernel_of_config = _try(self, session, config, args, kwargs, runs if tunes else None)
        except (CompilationError, OutOfResources) as error:
            failure = error
            continue
        except Exception as error:
            if getattr(error, "nereid_kernel", None) is None:
                raise
            failure = error
            continue
        kept.append(config)
        kernel = kernel or kernel_of_config
        if launch is not None:
            launches.append(launch)
    if not kept:
        raise failure
    if first_time:
        _offered(self)[key] = kept
        self.cache[key] = _chosen(kept)
        self.configs_timings = {config: [1.0, 1.0, 1.0] for config in kept}
        self.bench_time = 0.0
        self.pre_hook({**self.nargs, **kwargs, **kept[0].all_kwargs()}, reset_only=True)
    tuning = None
    if tunes and launches:
        with session.recorder.diverted() as reset:
            self.pre_hook({**self.nargs, **kwargs, **kept[0].all_kwargs()}, reset_only=True)
        hooks = [step for run in runs for step in run["before"] + run["after"]] + reset
        if all("call" in step for step in hooks):  # hooks that launch kernels are not repeated
            tuning = {"runs": runs, "reset": reset}
    self.best_config = _chosen(kept)
    self.nargs = None
    if launches:
        alternatives = [alternative for alternative, _ in launches]
        tensors = list({id(tensor): tensor for _, of_one in launches for tensor in of_one}.values())
        tuner = (id(self), key) if len(self.configs) > 1 else None
        session.recorder.launch(alternatives, tensors, tuner, tuning)
    return kernel


def _tunes(self, recorder, key, first_time):
    """Whether the launch is where this key would be tuned: the first of its forward."""
    tuned = self.__dict__.setdefault("nereid_tuned", {})  # key -> the phase in which its last launch was
    if first_time:
        self.__dict__.setdefault("nereid_tuned_in_forward", {})[key] = recorder.phase[0] == "forward"
    first_of_phase = tuned.get(key) != recorder.phase
    tuned[key] = recorder.phase
    return first_of_phase and self.nereid_tuned_in_forward[key] and recorder.phase[0] == "forward"


def tuning_key(self, kwargs):
    """Triton's own: the key arguments' values, then the dtype of every argument that has one."""
    named = {name: value for name, value in {**self.nargs, **kwargs}.items() if name in self.arg_names}
    key = [named[name] for name in self.keys if name in named]
    key.extend(str(value.dtype) for value in named.values() if hasattr(value, "dtype"))
    return tuple(key)


def _chosen(kept):
    return kept[0] if len(kept) == 1 else Undecided()


def _offered(self):
    return self.__dict__.setdefault("nereid_offered", {})


def _try(self, session, config, args, kwargs, runs):
    """(alternative, its tensors) of one configuration, and the compiled kernel. To `runs`, where it is a
    list, goes what the hooks of the autotuner itself do before and after."""
    meta = config.all_kwargs()
    conflicts = kwargs.keys() & config.kwargs.keys()
    if conflicts:
        raise ValueError(
            f"Conflicting meta-parameters: {', '.join(sorted(conflicts))}. Make sure that you don't re-define"
            " auto-tuned symbols."
        )
    before_run, after_run = [], []
    if runs is not None:
        with session.recorder.diverted() as before_run:
            self.pre_hook({**self.nargs, **kwargs, **meta})
    session.collecting = collected = []
    try:
        with session.recorder.diverted() as before:
            if config.pre_hook is not None:
                config.pre_hook({**self.nargs, **kwargs, **meta})
            kernel = self.fn.run(*args, **kwargs, **meta)
    finally:
        session.collecting = None
        if runs is not None:
            with session.recorder.diverted() as after_run:
                self.post_hook({**self.nargs, **kwargs, **meta}, exception=sys.exc_info()[1])
    if len(collected) > 1:
        raise Untraceable("one configuration of an autotuned kernel launches several kernels")
    if not collected:  # an empty grid: nothing is launched, but what was called before has been
        session.recorder.extend(before)
        return None, kernel
    alternative, tensors = collected[0]
    if runs is not None:
        runs.append({"before": before_run, "after": after_run})
    if before:
        alternative["before"] = before
    alternative["config"] = ", ".join(
        f"{name}={value}" for name, value in meta.items() if not callable(value)
    )
    return (alternative, tensors), kernel


_original_run = Autotuner.run


def install():
    autotuner.Autotuner.run = run
