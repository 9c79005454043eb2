"""Which outside systems do the tests stand in for?"""
