"""Studies over many runs: sweeps, reports, gradients, speed, memory."""
