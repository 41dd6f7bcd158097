"""Settings: what is read, what is refused and how the refusal reads."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ivr.errors import ConfigError
from ivr.settings import ModelSource, Settings


def test_defaults_need_nothing() -> None:
    settings = Settings.load({})
    assert settings.public_url is None
    assert settings.drain_s == 120
    assert settings.max_calls == 50
    assert settings.reasoning_effort == "minimal"
    assert settings.realtime_model == "gpt-realtime-2.1"
    assert settings.data_dir == Path("var")
    assert settings.audio_url == f"file://{Path('var/audio').absolute()}"


def test_every_variable_of_the_contract_is_read(tmp_path: Path) -> None:
    env = {
        "IVR_PUBLIC_URL": "https://ivr.example.com/",
        "IVR_DATABASE_URL": "postgresql://u:p@db/ivr",
        "IVR_DATA_DIR": str(tmp_path),
        "IVR_AUDIO_URL": "s3://bucket/audio/",
        "IVR_CALLFLOWS": str(tmp_path),
        "TWILIO_ACCOUNT_SID": "AC" + "0" * 32,
        "TWILIO_AUTH_TOKEN": "tok",
        "TWILIO_API_BASE_URL": "http://127.0.0.1:9/",
        "OPENAI_API_KEY": "sk-1",
        "OPENAI_BASE_URL": "https://eu.api.openai.com/v1",
        "IVR_REALTIME_URL": "ws://127.0.0.1:9000/v1",
        "IVR_REALTIME_MODEL": "m1",
        "IVR_TRANSCRIBE_MODEL": "m2",
        "IVR_SUMMARY_MODEL": "m3",
        "IVR_SPEECH_MODEL": "m4",
        "IVR_EMBEDDING_MODEL": "BAAI/bge-small-en-v1.5",
        "IVR_DRAIN_S": "7.5",
        "IVR_MAX_CALLS": "3",
        "IVR_REASONING_EFFORT": "low",
        "IVR_LOG_LEVEL": "debug",
        "IVR_LOG_FORMAT": "json",
        "IVR_VOICE_PROFILE": __file__,
    }
    settings = Settings.load(env)
    assert settings.public_url == "https://ivr.example.com"
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://u:p@db/ivr"
    assert (settings.audio_url, settings.callflows) == ("s3://bucket/audio", tmp_path)
    assert settings.twilio_api_base_url == "http://127.0.0.1:9"
    assert (settings.realtime_model, settings.transcribe_model) == ("m1", "m2")
    assert (settings.summary_model, settings.speech_model) == ("m3", "m4")
    assert settings.embedding_model == "BAAI/bge-small-en-v1.5"
    assert (settings.drain_s, settings.max_calls, settings.log_format) == (7.5, 3, "json")
    assert settings.voice_profile == Path(__file__)
    assert settings.secrets() == ("tok", "sk-1", "postgresql://u:p@db/ivr")


def test_the_process_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IVR_MAX_CALLS", "12")
    assert Settings.load().max_calls == 12
    assert Settings.load({}).max_calls == 50


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("IVR_PUBLIC_URL", "ivr.example.com"),
        ("IVR_PUBLIC_URL", "http://ivr.example.com"),
        ("IVR_PUBLIC_URL", "https://ivr.example.com/?a=b"),
        ("IVR_PUBLIC_URL", "https://ivr.example.com:99999"),
        ("IVR_PUBLIC_URL", "https://"),
        ("IVR_DATABASE_URL", "mysql://u:hunter2@db/ivr"),
        ("IVR_DATA_DIR", __file__),
        ("IVR_AUDIO_URL", "/var/audio"),
        ("IVR_CALLFLOWS", "/no/such/folder"),
        ("IVR_VOICE_PROFILE", "/no/such/file"),
        ("TWILIO_ACCOUNT_SID", "SK123"),
        ("TWILIO_API_BASE_URL", "ftp://x"),
        ("OPENAI_BASE_URL", "wss://api.openai.com"),
        ("IVR_REALTIME_URL", "https://api.openai.com/v1"),
        ("IVR_REALTIME_URL", "ws://127.0.0.1:9000/v1/realtime"),
        ("IVR_REALTIME_URL", "sandbocks"),
        ("IVR_REALTIME_MODEL", "two words"),
        ("IVR_REASONING_EFFORT", "maximal"),
        ("IVR_DRAIN_S", "soon"),
        ("IVR_DRAIN_S", "-1"),
        ("IVR_DRAIN_S", "nan"),
        ("IVR_MAX_CALLS", "0"),
        ("IVR_MAX_CALLS", "2.5"),
        ("IVR_LOG_LEVEL", "loud"),
        ("IVR_LOG_FORMAT", "xml"),
    ],
)
def test_a_wrong_value_is_one_line_with_variable_fault_and_example(variable: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.load({variable: value})
    text = str(caught.value)
    assert caught.value.variable == variable
    assert text.startswith(f"{variable}: ")
    assert "(example: " in text
    assert "\n" not in text
    assert len(caught.value.fault) > 5


def test_an_example_is_itself_a_right_value() -> None:
    for info in Settings.model_fields.values():
        variable, examples = info.validation_alias, info.examples
        assert isinstance(variable, str)
        assert examples
        if variable not in ("IVR_CALLFLOWS", "IVR_REALTIME_URL", "IVR_VOICE_PROFILE"):
            Settings.load({variable: examples[0]})


def test_an_empty_variable_is_not_set() -> None:
    assert Settings.load({"IVR_PUBLIC_URL": " ", "IVR_MAX_CALLS": ""}).max_calls == 50


def test_http_is_for_this_machine() -> None:
    assert Settings.load({"IVR_PUBLIC_URL": "http://127.0.0.1:8000"}).public_url == "http://127.0.0.1:8000"
    assert Settings.load({"IVR_PUBLIC_URL": "http://localhost:8000"}).public_url == "http://localhost:8000"


def test_secrets_show_nowhere() -> None:
    env = {
        "TWILIO_AUTH_TOKEN": "hush1",
        "OPENAI_API_KEY": "hush2",
        "IVR_DATABASE_URL": "postgresql://u:hush3@db/x",
    }
    settings = Settings.load(env)
    assert "hush" not in repr(settings) + str(settings)
    with pytest.raises(ConfigError) as caught:
        Settings.load({**env, "IVR_DATABASE_URL": "nosql://u:hush3@db/x"})
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings.load({}).max_calls = 3  # type: ignore[misc]  # that it is read-only is the point


@pytest.mark.parametrize(
    ("env", "source"),
    [
        ({}, ModelSource.NONE),
        ({"OPENAI_API_KEY": "k"}, ModelSource.OPENAI),
        ({"OPENAI_API_KEY": "k", "IVR_REALTIME_URL": "sandbox"}, ModelSource.SANDBOX),
        ({"IVR_REALTIME_URL": "wss://models.example.com/v1"}, ModelSource.COMPATIBLE),
    ],
)
def test_where_the_model_is(env: dict[str, str], source: ModelSource) -> None:
    assert Settings.load(env).model_source is source


def test_no_model_names_the_three_ways() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.load({}).require_model()
    text = str(caught.value)
    assert all(way in text for way in ("OPENAI_API_KEY", "IVR_REALTIME_URL", "sandbox"))
    Settings.load({}).with_sandbox().require_model()
    moved = Settings.load({}).with_sandbox().with_realtime_url("ws://127.0.0.1:4000/v1")
    assert moved.model_source is ModelSource.COMPATIBLE


def test_a_demo_token_takes_the_place_of_a_missing_one() -> None:
    token = Settings.load({}).with_auth_token("made").twilio_auth_token
    assert token is not None
    assert token.get_secret_value() == "made"


def test_flow_files_see_what_is_not_the_service_s_own_and_logs_hide_it() -> None:
    settings = Settings.load(
        {
            "SHOP_KEY": "k3y",
            "SHOP_URL": "x",
            "OPENAI_API_KEY": "sk-1",
            "IVR_LOG_LEVEL": "info",
            "EMPTY_KEY": " ",
        }
    )
    assert settings.flow_environment.keys() == {"SHOP_KEY", "SHOP_URL"}
    assert settings.with_sandbox().flow_environment.keys() == {"SHOP_KEY", "SHOP_URL"}
    assert set(settings.secrets()) == {"sk-1", "k3y"}
    assert "k3y" not in repr(settings)


def test_hosts_that_may_be_private() -> None:
    assert Settings.load({}).private_hosts == ()
    assert Settings.load({"IVR_PRIVATE_HOSTS": "localhost, 127.0.0.1"}).private_hosts == (
        "localhost",
        "127.0.0.1",
    )


def test_subaccounts_have_tokens_of_their_own_which_show_nowhere() -> None:
    one, two = "AC" + "1" * 32, "AC" + "2" * 32
    settings = Settings.load({"TWILIO_SUBACCOUNT_TOKENS": f" {one}=first, {two}=sec=ond "})
    assert settings.subaccounts == {one: "first", two: "sec=ond"}
    assert {"first", "sec=ond"} <= set(settings.secrets())
    assert "first" not in repr(settings)
    assert Settings.load({}).subaccounts == {}
    for wrong in (one, f"{one}=", "=token", f"{one}=a,token"):
        with pytest.raises(ConfigError, match="TWILIO_SUBACCOUNT_TOKENS"):
            Settings.load({"TWILIO_SUBACCOUNT_TOKENS": wrong})
