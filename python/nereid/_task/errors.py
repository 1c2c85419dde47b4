"""What the tracer says when it cannot go on."""


class Untraceable(RuntimeError):
    """The module does something that no trace can hold; the message is for the module's author."""


class Malformed(Exception):
    """The file is not a task or a candidate at all: it does not parse, or lacks a class or a function."""


class KernelDoesNotCompile(Exception):
    """Triton's front end refused a kernel. `place` is (file, line) of what it refused, `code` that line."""

    def __init__(self, kernel, message, file, line, code):
        super().__init__(f"{kernel}: {message}")
        self.kernel, self.message, self.file, self.line, self.code = kernel, message, file, line, code
