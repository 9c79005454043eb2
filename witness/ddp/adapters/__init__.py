"""How does the training side fit into what other people's training already runs in?

One module a framework; each imports only its own library, and says so where that is missing.
"""
