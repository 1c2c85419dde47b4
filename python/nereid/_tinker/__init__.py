"""The client of a Tinker-compatible service, for `nereid train rl`."""
