"""ModelNew is another name of a torch module.

reference: ../tasks/relu.py
verdict: Disallowed or Malformed
rule: no-launch or no-model-class
why: there is no launch, whatever the class is called.
"""
import torch.nn as nn

ModelNew = nn.ReLU
