"""Where the simulator was held against kernels, and how far apart they were there."""
