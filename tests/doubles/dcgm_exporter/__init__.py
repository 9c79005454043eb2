"""How does a node's dcgm-exporter look to whoever scrapes it?

Eight simulated GPUs with a clock of their own, faults that happen at set times, and the exporter's
text over HTTP. Nothing here was read from a real GPU: names, labels, types and the ways in which
versions differ follow the exporter; the numbers are made up, from a seed.
"""
