"""Timing: of the simulator on any machine, of kernels on a GPU. Records of past runs lie in ``records/``."""
