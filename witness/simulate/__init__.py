"""How are the checks proved on real processes, without a GPU and without a bad one?"""
