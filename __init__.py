"""An open, RTL-level model of an AWS NeuronCore-v2 class accelerator: what the folders beside this file hold."""
