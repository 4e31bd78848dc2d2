"""Faults while pmt writes: processes killed, disks that fill up, commands that meet."""
