"""Where do a cluster's metrics lie, and how are they asked for?"""
