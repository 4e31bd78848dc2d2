"""The lab of pmt: sweeps, reports, the reproduction of the paper, studies and speed."""
