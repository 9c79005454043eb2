"""What does the server say of itself: its version, its groups, its resources?"""

from tests.doubles.kubernetes.answers import Json
from tests.doubles.kubernetes.resources import RESOURCES, Resource

VERSION: Json = {
    "major": "1",
    "minor": "20",
    "gitVersion": "v1.20.2",
    "gitCommit": "faecb196815e248d3ecfb03c680a4507229c2a56",
    "gitTreeState": "clean",
    "buildDate": "2021-01-13T13:20:00Z",
    "goVersion": "go1.15.5",
    "compiler": "gc",
    "platform": "linux/amd64",
}
HEALTH_PATHS = ("/healthz", "/readyz", "/livez")


def discover(path: str) -> Json | str | None:
    """Answer a path that is about the server itself; None for any other."""
    path = path.rstrip("/")
    if path == "/version":
        return dict(VERSION)
    if path in HEALTH_PATHS:
        return "ok"
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()}
    if path == "/api/v1":
        return _resource_list("", "v1")
    parts = path.split("/")
    if len(parts) == 4 and parts[1] == "apis" and _served(parts[2], parts[3]):
        return {"apiVersion": "v1", **_resource_list(parts[2], parts[3])}
    return None


def _served(group: str, version: str) -> list[Resource]:
    return [one for one in RESOURCES if (one.group, one.version) == (group, version)]


def _groups() -> list[Json]:
    groups: dict[str, list[Json]] = {}
    for one in RESOURCES:
        version = {"groupVersion": one.api_version, "version": one.version}
        if one.group and version not in groups.setdefault(one.group, []):
            groups[one.group].append(version)
    return [
        {"name": name, "versions": versions, "preferredVersion": versions[0]}
        for name, versions in groups.items()
    ]


def _resource_list(group: str, version: str) -> Json:
    served = _served(group, version)
    listed: list[Json] = []
    for one in served:
        entry: Json = {
            "name": one.plural,
            "singularName": "",
            "namespaced": one.namespaced,
            "kind": one.kind,
            "verbs": list(one.verbs),
        }
        if one.short:
            entry["shortNames"] = list(one.short)
        listed.append(entry)
        listed.extend(_subresource(one, name, kind) for name, kind in one.subresources)
    api_version = served[0].api_version
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": listed}


def _subresource(one: Resource, name: str, kind: str) -> Json:
    verbs = ["get", "patch", "update"] if name == "status" else ["create"]
    entry: Json = {
        "name": f"{one.plural}/{name}",
        "singularName": "",
        "namespaced": one.namespaced,
        "kind": kind,
        "verbs": verbs,
    }
    if name == "eviction":
        # kubectl reads here in which version it may ask for an eviction.
        entry |= {"group": "policy", "version": "v1beta1"}
    return entry
