"""With which address, certificates and token is a cluster spoken to?

The official client reads them (kubeconfig with token plugins, or the pod's own account). It is
imported at first use: a service that only shows pages does not pay for it.
"""

from importlib import import_module
from typing import Any

from app.cluster.errors import ClusterNotConfigured


def preload() -> None:
    """Import the client now, so that the first person who looks at a node need not wait for it."""
    for module in ("kubernetes.client.api_client", "kubernetes.config"):
        import_module(module)


def kubeconfig_client(path: str | None, context: str | None) -> Any:
    """Make a client for one context of a kubeconfig; leaves the global default alone."""
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import kube_config

    loader: Any = kube_config
    settings = _once_only(Configuration())
    where = f"kubeconfig {path}" if path else "the default kubeconfig"
    try:
        return loader.new_client_from_config(
            config_file=path,
            context=context,
            persist_config=False,
            client_configuration=settings,
        )
    except Exception as error:
        # The loader raises whatever YAML, base64, the file system or an exec plugin gave it.
        raise ClusterNotConfigured(_cannot_use(where, context, error)) from error


def in_cluster_client() -> Any:
    """Make a client from the service account of the pod that we run in."""
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import incluster_config

    loader: Any = incluster_config
    settings = _once_only(Configuration())
    try:
        loader.load_incluster_config(client_configuration=settings)
    except Exception as error:
        raise ClusterNotConfigured(_cannot_use("the pod's own account", None, error)) from error
    return ApiClient(configuration=settings)


def _once_only(settings: Any) -> Any:
    """Switch every automatic retry and redirect off: a second attempt is ours to decide.

    A redirect would turn a PATCH into a GET and its login page into a success.
    """
    settings.retries = False
    settings.client_go_retries = False
    return settings


def _cannot_use(where: str, context: str | None, error: Exception) -> str:
    of = f", context {context}" if context else ""
    why = " ".join(str(error).split())[:300] or type(error).__name__
    return f"Cannot use {where}{of}: {why}"
