"""Is the process alive, can it take calls, what are its figures."""

import asyncio

import structlog
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ivr.web.deps import Readiness, WebDeps

READY_TIMEOUT_S = 2.0

log = structlog.get_logger(__name__)


class HealthRoutes:
    """`/healthz`, `/readyz`, `/metrics`."""

    def __init__(self, deps: WebDeps) -> None:
        self._deps = deps

    async def healthz(self, _request: Request) -> Response:
        """200 while the event loop turns."""
        return PlainTextResponse("ok")

    async def readyz(self, _request: Request) -> Response:
        """200 when everything needed works and no drain is on; else 503. Names only, no details."""
        draining = self._deps.draining()
        readiness = await self._readiness()
        ready = readiness.ok and not draining
        body: dict[str, object] = {"ready": ready, "draining": draining, "checks": readiness.checks}
        if readiness.warnings:
            body["warnings"] = list(readiness.warnings)
        return JSONResponse(body, status_code=200 if ready else 503)

    async def metrics(self, _request: Request) -> Response:
        """Prometheus's text format."""
        return Response(self._deps.metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})

    async def _readiness(self) -> Readiness:
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                return await self._deps.ready()
        except TimeoutError:  # a database that is gone takes its time to be given up
            log.warning("readiness_check_late")
            return Readiness({"checks": False})
        except Exception:  # the request's border: a check that breaks means not ready
            log.exception("readiness_check_failed")
            return Readiness({"checks": False})
