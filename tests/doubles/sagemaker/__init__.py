"""What does SageMaker HyperPod do? A faithful small double of it, over real HTTP.

Requests and answers are checked against the service model that the real client uses.
"""

from tests.doubles.sagemaker.double import Call, SagemakerDouble
from tests.doubles.sagemaker.faults import Fault, throttled
from tests.doubles.sagemaker.platform import Platform
from tests.doubles.sagemaker.state import Cluster, Group, Node, Timings

__all__ = [
    "Call",
    "Cluster",
    "Fault",
    "Group",
    "Node",
    "Platform",
    "SagemakerDouble",
    "Timings",
    "throttled",
]
