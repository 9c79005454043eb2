"""Who is asking, what may they do, and whose token is this?"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.doubles.kubernetes.answers import ApiError, Json, failure, not_found, unauthorized
from tests.doubles.kubernetes.resources import Target

ANONYMOUS = "system:anonymous"
PUBLIC_PATHS = ("/version", "/healthz", "/readyz", "/livez")


@dataclass(frozen=True)
class Rule:
    """What a user may do; "*" stands for everything, no namespaces for all of them."""

    verbs: Sequence[str]
    resources: Sequence[str]  # plural, or plural/subresource
    groups: Sequence[str] = ("*",)
    namespaces: Sequence[str] = ()

    def allows(self, verb: str, resource: str, group: str, namespace: str) -> bool:
        return (
            bool({"*", verb} & set(self.verbs))
            and bool({"*", resource} & set(self.resources))
            and bool({"*", group} & set(self.groups))
            and (not self.namespaces or namespace in self.namespaces)
        )


EVERYTHING = (Rule(["*"], ["*"]),)
NOTHING: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class User:
    """One account behind a bearer token."""

    name: str
    rules: Sequence[Rule] = NOTHING
    groups: Sequence[str] = ("system:authenticated",)


@dataclass
class IssuedToken:
    """A service account's token that TokenRequest has given out."""

    namespace: str
    account: str
    uid: str
    audiences: list[str]


@dataclass
class Access:
    """The tokens that the server knows."""

    users: dict[str, User]
    issued: dict[str, IssuedToken] = field(default_factory=dict)

    def who(self, authorization: str | None) -> User:
        """Find the user of a request; raise 401 for a token that nobody has."""
        if not authorization:
            return User(ANONYMOUS, groups=("system:unauthenticated",))
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token.strip() in self.users:
            return self.users[token.strip()]
        if scheme.lower() == "bearer" and token.strip() in self.issued:
            one = self.issued[token.strip()]
            return User(f"system:serviceaccount:{one.namespace}:{one.account}")
        raise unauthorized()

    def demand(self, user: User, verb: str, target: Target) -> None:
        """Raise 403 unless the user may do this."""
        resource = target.resource
        if resource.plural == "selfsubjectaccessreviews" and user.name != ANONYMOUS:
            return  # Everybody who is known may ask what they may do.
        plural = resource.plural + (f"/{target.subresource}" if target.subresource else "")
        if may(user, verb, plural, resource.group, target.namespace):
            return
        raise _forbidden(user, verb, plural, target)

    def issue(self, target: Target, uid: str, audiences: list[str]) -> str:
        """Give out a token for a service account."""
        token = secrets.token_urlsafe(24)
        issued = IssuedToken(target.namespace, target.name, uid, audiences or ["kubernetes"])
        self.issued[token] = issued
        return token

    def review(self, spec: Json) -> Json:
        """Give the status of a TokenReview."""
        token, wanted = str(spec.get("token", "")), list(spec.get("audiences") or ["kubernetes"])
        found = self.issued.get(token)
        if found is not None:
            common = [one for one in wanted if one in found.audiences]
            if not common:
                has, asked = json.dumps(found.audiences), json.dumps(wanted)
                words = f"token audiences {has} is invalid for the target audiences {asked}"
                return {"user": {}, "error": f"[invalid bearer token, {words}]"}
            return {"authenticated": True, "user": _account(found), "audiences": common}
        if token in self.users:
            user = self.users[token]
            return {
                "authenticated": True,
                "user": {"username": user.name, "groups": list(user.groups)},
                "audiences": wanted,
            }
        return {"user": {}, "error": "invalid bearer token"}


def may(user: User, verb: str, resource: str, group: str, namespace: str) -> bool:
    return any(rule.allows(verb, resource, group, namespace) for rule in user.rules)


def _account(one: IssuedToken) -> Json:
    return {
        "username": f"system:serviceaccount:{one.namespace}:{one.account}",
        "uid": one.uid,
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{one.namespace}",
            "system:authenticated",
        ],
    }


def _forbidden(user: User, verb: str, plural: str, target: Target) -> ApiError:
    scope = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    group = target.resource.group
    shown = f"{target.resource.plural}.{group}" if group else target.resource.plural
    what = f'{shown} "{target.name}" is' if target.name else f"{shown} is"
    message = (
        f'{what} forbidden: User "{user.name}" cannot {verb} resource "{plural}" '
        f'in API group "{group}" {scope}'
    )
    details = {**({"name": target.name} if target.name else {}), "kind": target.resource.plural}
    return failure(403, "Forbidden", message, details)


def forbidden_path(user: User, path: str) -> ApiError:
    return failure(403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {})


def account_missing(name: str) -> ApiError:
    return not_found("serviceaccounts", name)
