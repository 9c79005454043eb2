"""How are evictions, tokens and access reviews answered?"""

from datetime import UTC, datetime, timedelta

from tests.doubles.kubernetes.access import Access, account_missing, may
from tests.doubles.kubernetes.answers import Answer, ApiError, Json, failure, wrong_uid
from tests.doubles.kubernetes.asking import Asked
from tests.doubles.kubernetes.resources import RESOURCES, Target
from tests.doubles.kubernetes.selectors import labels_test
from tests.doubles.kubernetes.store import Store
from tests.doubles.kubernetes.writing import success

_BUDGETS = next(one for one in RESOURCES if one.store == "budgets")


def evict(store: Store, target: Target, asked: Asked) -> Answer:
    """Answer a request to evict a pod: 404, 409, 429 or done."""
    options = asked.json_body().get("deleteOptions") or {}
    with store.lock:
        pod = store.get(target.resource, target.namespace, target.name)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted and wanted != pod["metadata"]["uid"]:
            raise wrong_uid("Pod", target.name, wanted, pod["metadata"]["uid"])
        if pod.get("status", {}).get("phase") not in ("Pending", "Succeeded", "Failed"):
            _ask_budgets(store, pod, target.namespace)
        if not (asked.is_dry_run or "All" in (options.get("dryRun") or ())):
            store.delete(target.resource, target.namespace, target.name)
    return Answer(201, success(201))


def _ask_budgets(store: Store, pod: Json, namespace: str) -> None:
    for budget in store.list(_BUDGETS, namespace):
        labels = budget.get("spec", {}).get("selector", {}).get("matchLabels") or {}
        test = labels_test(",".join(f"{key}={value}" for key, value in labels.items()))
        if not test(pod):
            continue
        allowed = (budget.get("status") or {}).get("disruptionsAllowed")
        if not allowed:
            raise _blocked(budget["metadata"]["name"], known=allowed is not None)


def _blocked(name: str, *, known: bool) -> ApiError:
    words = (
        f"The disruption budget {name} needs all its pods."
        if known
        else f"The disruption budget {name} is still being processed by the server."
    )
    details = {"causes": [{"reason": "DisruptionBudget", "message": words}]}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return failure(429, "TooManyRequests", message, details)


def request_token(store: Store, access: Access, target: Target, asked: Asked) -> Answer:
    """Answer a TokenRequest for a service account."""
    if not store.has(target.resource, target.namespace, target.name):
        raise account_missing(target.name)
    account = store.get(target.resource, target.namespace, target.name)
    spec = dict(asked.json_body().get("spec") or {})
    audiences = list(spec.get("audiences") or [])
    until = datetime.now(UTC) + timedelta(seconds=int(spec.get("expirationSeconds") or 3600))
    status = {
        "token": access.issue(target, account["metadata"]["uid"], audiences),
        "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return Answer(201, _review("TokenRequest", "authentication.k8s.io/v1", spec, status))


def review(access: Access, target: Target, asked: Asked) -> Answer:
    """Answer a TokenReview or a SelfSubjectAccessReview."""
    spec = dict(asked.json_body().get("spec") or {})
    kind, version = target.resource.kind, target.resource.api_version
    if kind == "TokenReview":
        return Answer(201, _review(kind, version, spec, access.review(spec)))
    wanted = spec.get("resourceAttributes") or {}
    plural = str(wanted.get("resource", ""))
    if wanted.get("subresource"):
        plural += f"/{wanted['subresource']}"
    verb, group = str(wanted.get("verb", "")), str(wanted.get("group", ""))
    allowed = may(asked.user, verb, plural, group, str(wanted.get("namespace", "")))
    status: Json = {"allowed": allowed}
    if allowed:
        status["reason"] = f'RBAC: allowed by the rules of "{asked.user.name}"'
    return Answer(201, _review(kind, version, spec, status))


def _review(kind: str, version: str, spec: Json, status: Json) -> Json:
    return {
        "kind": kind,
        "apiVersion": version,
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": status,
    }
