"""What can be checked beside the three checks, for a price that only some jobs want to pay?

`reduction` watches the sums of the all-reduce, `sharded` optimizer state that only one rank holds,
`standby` settles disputes of two replicas. Nothing here runs unless it is built.
"""
