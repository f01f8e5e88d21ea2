"""Front end that the vector and the scalar engine share: addresses, steps, operands and results."""
