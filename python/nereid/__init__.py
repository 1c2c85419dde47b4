"""Nereid's Python side: the tracer and the kernel compiler, both run by the native program."""
