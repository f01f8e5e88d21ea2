"""Functions of the Neuron Kernel Interface's two dialects, under their published names."""
