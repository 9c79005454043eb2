"""How is one node read and patched, and is the answer really about that node?"""

import re
from collections.abc import Mapping
from typing import Any

from app.cluster.api import KubernetesApi
from app.cluster.errors import ClusterFailed, ClusterRefused
from app.cluster.marks import FIELD_MANAGER
from app.cluster.node_state import read_node
from app.cluster.ports import NodeState

NODES = "/api/v1/nodes"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NODE_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NODE_NAME_LIMIT = 253


def node_path(name: str) -> str:
    """Give the path of a node; refuse what cannot be a node's name, such as ".." or "a/b".

    Names come from rank maps that anybody's job may post; a path built from one must never lead
    to another object.
    """
    if len(name) > _NODE_NAME_LIMIT or not _NODE_NAME.fullmatch(name):
        shown = name if name.isprintable() and name else repr(name)
        raise ClusterRefused(f"{shown[:100]} cannot be the name of a Kubernetes node.")
    return f"{NODES}/{name}"


def get_node(api: KubernetesApi, name: str) -> NodeState:
    """Read one node; raise `NodeGone` where there is none of this name."""
    return _about(name, api.get(node_path(name)), changing=False)


def patch_node(
    api: KubernetesApi, name: str, body: Mapping[str, Any], *, dry_run: bool
) -> NodeState:
    """Send one patch, for real or as the server's dry run, and give the node it answers with."""
    query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
    return _about(name, api.patch(node_path(name), body, query), changing=not dry_run)


def _about(name: str, document: Mapping[str, Any], *, changing: bool) -> NodeState:
    """Read a node's JSON; refuse an answer about something else."""
    metadata = document.get("metadata")
    if document.get("kind") != "Node" or not isinstance(metadata, Mapping):
        raise ClusterFailed(
            "The cluster answered with something that is no node.", maybe_applied=changing
        )
    if metadata.get("name") != name:
        raise ClusterFailed("The cluster answered about another node.", maybe_applied=changing)
    return read_node(document)
