"""How does one rank compute wrong on purpose, so that a check can show that it notices?

Never arm a fault in a run whose weights are kept.
"""

from witness.inject.fault import Fault
from witness.inject.injector import Injector

__all__ = ["Fault", "Injector"]
