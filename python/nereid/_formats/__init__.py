"""Tasks from other projects' formats, written kernels in the formats that others load, and GGUF files as
checkpoints."""
