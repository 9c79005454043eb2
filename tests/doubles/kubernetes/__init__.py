"""What does a Kubernetes API server do? A faithful small double of one, over real HTTP.

Its answers are compared with those recorded from a real server in `tests/data/kubernetes`.
"""

from tests.doubles.kubernetes.access import EVERYTHING, NOTHING, Rule, User
from tests.doubles.kubernetes.double import ADMIN_TOKEN, Call, KubernetesDouble
from tests.doubles.kubernetes.faults import Fault

__all__ = [
    "ADMIN_TOKEN",
    "EVERYTHING",
    "NOTHING",
    "Call",
    "Fault",
    "KubernetesDouble",
    "Rule",
    "User",
]
