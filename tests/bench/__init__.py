"""How fast is the service, as ratios to floors that the same run measures on the same machine?"""
