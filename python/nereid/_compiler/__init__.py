"""TTIR text to machine code for one GPU architecture, without a GPU."""
