"""Times programs as their users call them, in warmed processes: PyTorch's own modes, and candidates."""
