"""Runs a module without data and without a GPU, and writes down what it did."""
