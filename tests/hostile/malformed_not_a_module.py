"""ModelNew is a number.

reference: ../tasks/relu.py
verdict: Malformed or Untraceable
rule: no-model-class or python-error or not-traceable
why: a number cannot be constructed and called.
"""
ModelNew = 42
