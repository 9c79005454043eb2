"""Does a machine's whole life work: alarm, cordon, replacement, the one that comes after it?

`make drill`, or `python -m tests.drill [name ...]`: the real service on a fresh SQLite database,
over HTTP, with doubles of Kubernetes and SageMaker on a clock that is put forward. Every step is
shown; anything that is off ends it with a failure.
"""
