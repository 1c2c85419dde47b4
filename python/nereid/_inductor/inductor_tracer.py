"""The tracer, with what Inductor's kernels import there already: more than a second of each of their
traces."""

from nereid._tracer import tracer
from nereid._tracer.tracer import handle, warm_up  # noqa: F401


def warm():
    about = tracer.warm()
    import torch._inductor.runtime.triton_helpers  # noqa: F401

    return about
