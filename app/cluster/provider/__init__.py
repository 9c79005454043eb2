"""Which machines does the owner of a cluster's hardware have, and what may be asked of it?"""
