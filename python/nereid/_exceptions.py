"""The two kinds of exceptions of the public interface."""


class InputError(ValueError):
    """The caller's fault: a file that is missing, a reference that does not run, an option out of its bounds.

    The message says what failed, where, what was expected and what was found.
    """

    __module__ = "nereid"


class NereidError(RuntimeError):
    """A fault of Nereid or of the machine: a process that died, a full disk, a time limit of the caller.

    It says nothing about a candidate. The same question may be asked again.
    """

    __module__ = "nereid"
