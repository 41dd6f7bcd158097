"""The web application: which path is answered by what."""

from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute

from ivr.web.called import ACCEPT_PATH, CalledRoutes
from ivr.web.deps import WebDeps
from ivr.web.health import HealthRoutes
from ivr.web.media import MediaRoute
from ivr.web.queues import HOLD_PATH, QueueRoutes
from ivr.web.voice import (
    CONTINUE_PATH,
    KEYS_PATH,
    MEDIA_PATH,
    QUEUED_PATH,
    RECORDED_PATH,
    RECORDING_PATH,
    SERVED_PATH,
    STATUS_PATH,
    TRANSFERRED_PATH,
    WAITING_PATH,
    WHISPER_PATH,
    VoiceRoutes,
)

VOICE_PATH = "/twilio/voice"


def create_app(deps: WebDeps) -> Starlette:
    """The application. It owns no background task: a call lives in its socket's request."""
    voice, media, health = VoiceRoutes(deps), MediaRoute(deps), HealthRoutes(deps)
    called, queues = CalledRoutes(deps), QueueRoutes(deps)
    return Starlette(
        routes=[
            Route(VOICE_PATH, voice.voice, methods=["POST"]),
            Route(CONTINUE_PATH, voice.continue_, methods=["POST"]),
            Route(STATUS_PATH, voice.status, methods=["POST"]),
            Route(KEYS_PATH, voice.keys, methods=["POST"]),
            Route(TRANSFERRED_PATH, voice.transferred, methods=["POST"]),
            Route(RECORDED_PATH, voice.recorded, methods=["POST"]),
            Route(RECORDING_PATH, voice.recording, methods=["POST"]),
            Route(QUEUED_PATH, voice.queued, methods=["POST"]),
            Route(SERVED_PATH, voice.served, methods=["POST"]),
            Route(WAITING_PATH, queues.waiting, methods=["POST"]),
            Route(HOLD_PATH, queues.hold),
            Route(WHISPER_PATH, called.whisper, methods=["POST"]),
            Route(ACCEPT_PATH, called.accept, methods=["POST"]),
            WebSocketRoute(MEDIA_PATH, media.media),
            Route("/healthz", health.healthz),
            Route("/readyz", health.readyz),
            Route("/metrics", health.metrics),
        ]
    )
