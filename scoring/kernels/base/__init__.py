"""What all kernels share: arrays, compilation, errors and random streams."""
