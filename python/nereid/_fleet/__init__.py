"""Judges on a Ray cluster, for `nereid serve --ray`."""
