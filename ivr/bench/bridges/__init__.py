"""Two bridges of the usual sample kind, to measure against: what most tutorials come to, and nothing else."""
