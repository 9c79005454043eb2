"""Which resources are served, and which of them does a path mean?"""

from dataclasses import dataclass
from urllib.parse import unquote

from tests.doubles.kubernetes.answers import no_such_path

_ALL = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Resource:
    """One kind of object under one group and version; `store` is shared by versions of a kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    store: str
    verbs: tuple[str, ...] = _ALL
    short: tuple[str, ...] = ()
    subresources: tuple[tuple[str, str], ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_review(self) -> bool:
        return self.verbs == ("create",)


RESOURCES = (
    Resource("", "v1", "nodes", "Node", False, "nodes", short=("no",),
             subresources=(("status", "Node"),)),
    Resource("", "v1", "pods", "Pod", True, "pods", short=("po",),
             subresources=(("status", "Pod"), ("eviction", "Eviction"))),
    Resource("", "v1", "events", "Event", True, "events", short=("ev",)),
    Resource("", "v1", "namespaces", "Namespace", False, "namespaces", short=("ns",)),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, "serviceaccounts",
             short=("sa",), subresources=(("token", "TokenRequest"),)),
    Resource("events.k8s.io", "v1", "events", "Event", True, "events", short=("ev",)),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True, "leases"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, "budgets",
             short=("pdb",)),
    Resource("policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget", True, "budgets",
             short=("pdb",)),
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
             False, "", verbs=("create",)),
    Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, "",
             verbs=("create",)),
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What a path points at; `name` and `namespace` are empty where the path has none."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_target(path: str) -> Target:
    """Read a resource path; raise 404 for one that is not served."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3 or "" in rest:
        raise no_such_path()
    for resource in RESOURCES:
        if (resource.group, resource.version, resource.plural) == (group, version, rest[0]):
            return _target(resource, namespace, rest)
    raise no_such_path()


def _target(resource: Resource, namespace: str, rest: list[str]) -> Target:
    name = rest[1] if len(rest) > 1 else ""
    sub = rest[2] if len(rest) > 2 else ""
    if sub and sub not in dict(resource.subresources):
        raise no_such_path()
    if resource.namespaced != bool(namespace) and (name or not resource.namespaced):
        raise no_such_path()
    return Target(resource, namespace, name, sub)
