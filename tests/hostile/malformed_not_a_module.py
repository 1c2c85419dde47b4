"""ModelNew is a number.

reference: ../tasks/relu.py
verdict: Malformed|Untraceable
rule: no-model-class|python-error|ModelNew
why: a number cannot be constructed and called.
"""
ModelNew = 42
