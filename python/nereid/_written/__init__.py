"""Text that files of `nereid lower` and `nereid optimize` carry: their guard, launches without Triton's
dispatch, CUDA graphs."""
