"""Functions of the Neuron Kernel Interface's two dialects, under their published names.

In the first dialect (`neuronxcc.nki`) a call returns its result as a new tile. In the second dialect (`nki`) a call
writes its result to an argument `dst`.
"""
