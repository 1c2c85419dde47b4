"""ModelNew is another name of a torch module.

reference: ../tasks/relu.py
verdict: Disallowed|Malformed
rule: no-launch|no-model-class
why: there is no launch, whatever the class is called.
"""
import torch.nn as nn

ModelNew = nn.ReLU
