"""What `torch.compile` would write for a traced module, as the text of a `ModelNew`."""
