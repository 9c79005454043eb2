"""Which of the rights that we use does the cluster grant us?"""

from app.cluster.api import KubernetesApi
from app.cluster.errors import ClusterRefused
from app.cluster.node_state import mapping
from app.cluster.ports import Permission

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

# verb, resource, API group, namespace (None: everywhere), what it is needed for.
NEEDED: tuple[tuple[str, str, str, str | None, str], ...] = (
    ("get", "nodes", "", None, "reading a node before and after every action"),
    ("list", "nodes", "", None, "the list of nodes"),
    ("patch", "nodes", "", None, "cordon and uncordon"),
    ("list", "pods", "", None, "showing what runs on a node before it is touched"),
    ("create", "events", "", "default", "an Event about each cordon"),
    ("create", "events", "events.k8s.io", "kube-system", "the same Event, where the first fails"),
)


def ask_permissions(api: KubernetesApi) -> tuple[Permission, ...]:
    """Ask the cluster about each right; an unreachable cluster raises at the first question."""
    return tuple(_ask(api, *needed) for needed in NEEDED)


def _ask(
    api: KubernetesApi, verb: str, resource: str, group: str, namespace: str | None, use: str
) -> Permission:
    attributes = {"verb": verb, "resource": resource, "group": group}
    if namespace is not None:
        attributes["namespace"] = namespace
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    allowed: bool | None = None
    try:
        status = mapping(api.post(REVIEWS, body).get("status"))
    except ClusterRefused as error:
        why = error.message
    else:
        allowed = status.get("allowed") if isinstance(status.get("allowed"), bool) else None
        why = str(status.get("reason") or "")
        if allowed is None:
            why = "The cluster did not answer the question."
    return Permission(verb, resource, group, namespace, use, allowed, why)
