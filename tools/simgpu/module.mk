# the simulated GPU
