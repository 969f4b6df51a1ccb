"""What can be said of a kernel without running it: budgets, occupancy, roofline, proofs."""
