"""Methods that the paper compares with, and engines other than the core."""
