"""What Triton's interpreter lacks for the compiler's kernels. For tests: on a GPU libdevice is CUDA's."""


def libdevice():
    """Triton's interpreter has no libdevice: its functions return None. Here they are numpy's or Python's."""
    import math

    import numpy
    import triton.language as tl
    from triton.language.extra import libdevice as module
    from triton.runtime.interpreter import TensorHandle

    def elementwise(function):
        def call(x):
            data = numpy.asarray(function(x.handle.data.astype(numpy.float64))).astype(x.handle.data.dtype)
            return tl.tensor(TensorHandle(data, x.handle.dtype), x.type)

        return call

    known = {
        name: getattr(numpy, name)
        for name in ("tanh", "log1p", "expm1", "sinh", "cosh", "tan", "rint", "trunc", "log2", "log10")
    }
    known |= {
        name: numpy.vectorize(getattr(math, name))
        for name in ("erf", "erfc", "lgamma", "asin", "acos", "atan")
    }
    for name, function in known.items():
        setattr(module, name, elementwise(function))
