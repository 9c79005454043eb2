"""What is the service put together from?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.gzip import GZipMiddleware

from app.actions.casework import Policy
from app.actions.executor import Executor
from app.actions.forwarding import Forwarder
from app.actions.telemetry.collector import Collector
from app.actions.telemetry.puller import Puller
from app.api import alarms as alarms_api
from app.api import audit as audit_api
from app.api import audit_requests as audit_requests_api
from app.api import batches as batches_api
from app.api import cases as cases_api
from app.api import decision_table as decision_table_api
from app.api import devices as devices_api
from app.api import jobs as jobs_api
from app.api import node_log as node_log_api
from app.api import offenders as offenders_api
from app.api import previews as previews_api
from app.api import proposals as proposals_api
from app.api import rails as rails_api
from app.api import requests as requests_api
from app.api import resume_floor as resume_floor_api
from app.api import telemetry as telemetry_api
from app.api import telemetry_export as telemetry_export_api
from app.cluster import registry
from app.cluster.provider import registry as provider_registry
from app.cluster.step_log import step_log
from app.config import Settings
from app.context import Context
from app.sources import log_entries
from app.sources import registry as source_registry
from app.store.store import Store
from app.web import errors, health, sessions, static
from app.web.metrics import Metrics
from app.web.middleware import Frame
from app.web.pages import (
    alarm,
    approvals,
    audit,
    batches,
    cases,
    condemned,
    decision_table,
    devices,
    docket,
    jobs,
    offenders,
    policy,
    proposals,
    requests,
    search,
    settings,
    settings_people,
    settings_providers,
    settings_tokens,
    sign_in,
    telemetry,
    timeline,
    triage,
    vetoes,
)
from ingest import routes as intake
from ingest.apply import apply_posts

# A form of ours is never larger.
FORM_LIMIT = 1 << 20

# One line a router: intake, pages, programs.  Routes are tried in this order, which costs every
# request as much as its matching ones stand behind others: intake comes first.
ROUTERS: tuple[APIRouter, ...] = (
    intake.router,
    static.router,
    health.router,
    sign_in.router,
    search.router,
    alarm.router,
    proposals.router,
    docket.router,
    approvals.router,
    batches.router,
    cases.router,
    condemned.router,
    requests.router,
    offenders.router,
    decision_table.router,
    triage.router,
    jobs.router,
    timeline.router,
    devices.router,
    vetoes.router,
    telemetry.router,
    audit.router,
    settings.router,
    policy.router,
    settings_tokens.router,
    settings_people.router,
    settings_providers.router,
    alarms_api.router,
    audit_api.router,
    resume_floor_api.router,
    audit_requests_api.router,
    cases_api.router,
    devices_api.router,
    telemetry_api.router,
    telemetry_export_api.router,
    node_log_api.router,
    offenders_api.router,
    decision_table_api.router,
    jobs_api.router,
    batches_api.router,
    proposals_api.router,
    previews_api.router,
    requests_api.router,
    rails_api.router,
)


def make_context(settings: Settings) -> Context:
    """Open the database, the clusters and the sources of their metrics."""
    policy = Policy.of(settings)
    url, apply = settings.resolved_database_url(), partial(apply_posts, policy=policy)
    store = Store.open(url, apply, settings.queue_limit)
    limit, folder = settings.cluster_timeout_s, settings.data_dir
    clusters = registry.clusters(settings.clusters, read_timeout_s=limit, folder=folder)
    return Context(
        settings,
        store,
        clusters,
        sources=source_registry.sources(settings.sources),
        node_logs=log_entries.node_logs(settings.node_logs),
        providers=provider_registry.providers(
            settings.providers, read_timeout_s=limit, folder=folder
        ),
    )


def create_app(settings: Settings, context: Context | None = None) -> FastAPI:
    """Compose the application; a context given from outside stays open at the end."""
    own = context is None
    context = context or make_context(settings)
    metrics = Metrics()
    app = FastAPI(
        title="Silent Witness",
        version="1",
        summary="Forensics for silent data corruption in GPU fleets",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # the framework's pages load their scripts from outside
        redoc_url=None,
        lifespan=_lifespan(context if own else None),
        middleware=[
            Middleware(Frame, metrics=metrics, too_large=errors.too_large),
            # Inside the frame, which says it in our words; intake's routes lift it for themselves.
            Middleware(RequestBodyLimitMiddleware, max_body_size=FORM_LIMIT),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
        ],
    )
    app.state.context = context
    app.state.metrics = metrics
    app.state.person_of = sessions.person_of
    app.state.executor = Executor(context)
    app.state.puller = Puller(context)
    app.state.collector = Collector(context)
    app.state.forwarder = Forwarder(context, step_log(settings.step_log))
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _lifespan(context: Context | None) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.executor.start()
        app.state.puller.start()
        app.state.collector.start()
        app.state.forwarder.start()
        yield
        await run_in_threadpool(app.state.collector.stop)
        await run_in_threadpool(app.state.puller.stop)
        await run_in_threadpool(app.state.executor.stop)
        await run_in_threadpool(app.state.forwarder.stop)
        if context is not None:
            for one in chain.from_iterable(context.sources.values()):
                one.close()
            for log in context.node_logs.values():
                log.close()
            context.store.close()

    return lifespan
