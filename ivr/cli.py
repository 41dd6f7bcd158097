"""`ivr`: the command line. Each command says in its help what it does and shows an example."""

import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from callflows.parse import FlowErrors
from ivr import __version__, demo, observe, simulate
from ivr.app import ServeOptions, serve
from ivr.bench.commands import bench_app
from ivr.callers import enrol_caller, forget_caller, keep_caller, share_caller, show_caller
from ivr.errors import CallthreadError, ConfigError
from ivr.flows_cli import flows_app
from ivr.jobs import run_jobs
from ivr.messages_cli import print_messages, save_message, show_message
from ivr.numbers import connect_number, list_numbers
from ivr.operate import CostQuery, migrate_database, print_call, print_calls, print_costs
from ivr.override import set_hours
from ivr.reembed import reembed_all
from ivr.sandbox import __main__ as sandbox_program
from ivr.server import run
from ivr.settings import Settings
from memory.store_costs import CostKey

app = typer.Typer(
    help="A telephone service that answers a business's number with a speech model and never loses the thread.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
calls_app = typer.Typer(help="Calls of the past and calls under way.", no_args_is_help=True)
db_app = typer.Typer(help="The database's schema.", no_args_is_help=True)
numbers_app = typer.Typer(
    help="The telephone numbers of your Twilio account, and where their calls go.", no_args_is_help=True
)
voicemail_app = typer.Typer(help="Messages that callers left.", no_args_is_help=True)
callers_app = typer.Typer(help="What is kept of a caller, and its erasure.", no_args_is_help=True)
app.add_typer(flows_app, name="flows")
app.add_typer(callers_app, name="callers")
app.add_typer(voicemail_app, name="voicemail")
app.add_typer(numbers_app, name="numbers")
app.add_typer(calls_app, name="calls")
app.add_typer(db_app, name="db")
app.add_typer(bench_app, name="bench")

T = TypeVar("T")
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def main() -> None:
    """The program. Expected errors are one line on stderr and exit code 1; a wrong setting is 2."""
    try:
        app()
    except ConfigError as error:
        _complain(error)
        sys.exit(2)
    except FlowErrors as error:
        err.print("\n".join(str(fault) for fault in error.faults), markup=False, soft_wrap=True)
        sys.exit(1)
    except CallthreadError as error:
        _complain(error)
        sys.exit(1)


def _complain(error: Exception) -> None:
    """One line, however the fault was worded by whoever raised it."""
    err.print(f"ivr: {' '.join(str(error).split())}", style="red", markup=False, soft_wrap=True)


def _settings() -> Settings:
    settings = Settings.load()
    observe.configure(settings.log_level, settings.log_format, secrets=settings.secrets())
    return settings


def _run(work: Coroutine[Any, Any, T]) -> T:
    return run(work)


@app.command("serve")
def serve_command(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65_535)
    ] = 8080,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Answer with the offline model.")] = False,
    worker: Annotated[bool, typer.Option(help="Run the background jobs beside it.")] = True,
) -> None:
    """Answer calls until Ctrl-C or SIGTERM; live calls are then handed over first (IVR_DRAIN_S).

    Example: OPENAI_API_KEY=… TWILIO_AUTH_TOKEN=… IVR_PUBLIC_URL=https://ivr.example.com ivr serve --host 0.0.0.0
    """
    settings = _settings()
    settings = settings.with_sandbox() if sandbox else settings

    def ready(address: str) -> None:
        out.print(f"callthread {__version__} answers at {settings.public_url or address}")
        out.print("Twilio's voice webhook: POST /twilio/voice (see README). Stop with Ctrl-C.")

    _run(serve(settings, ServeOptions(host, port, worker), ready))


@app.command("worker")
def worker_command(
    embedding_socket: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run background jobs only (summaries, embeddings, threads). `ivr serve` runs one unless told --no-worker."""
    _run(run_jobs(_settings(), embedding_socket))


@app.command("sandbox")
def sandbox_command(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = sandbox_program.DEFAULT_PORT,
    script: Annotated[Path | None, typer.Option(help="YAML of scripted turns, for tests.")] = None,
    partials_ms: Annotated[
        float, typer.Option(min=0, help="Tell words while the caller speaks, each so many ms; 0: at the end.")
    ] = 0,
) -> None:
    """The offline speech-model server alone. It speaks OpenAI's Realtime protocol; it is not a language model.

    Example: ivr sandbox --port 9000, then IVR_REALTIME_URL=ws://127.0.0.1:9000/v1 ivr serve
    """
    _settings()
    arguments = ["--host", host, "--port", str(port), "--partials-ms", str(partials_ms)]
    raise typer.Exit(sandbox_program.main(arguments + (["--script", str(script)] if script else [])))


@app.command("demo")
def demo_command(
    keep: Annotated[Path | None, typer.Option(help="Keep data and recordings in this folder.")] = None,
) -> None:
    """A caller dials, talks, is cut off, calls back and goes on, on the whole real service with the offline model."""
    observe.configure("error", "console")
    _run(demo.run_demo(out, keep))


@app.command("call")
def call_command(
    url: Annotated[str, typer.Argument(help="The running service, e.g. http://127.0.0.1:8080")],
    from_: Annotated[str, typer.Option("--from", help="The caller's number (E.164), or anonymous.")],
    to: Annotated[str, typer.Option("--to", help="A number of one of the service's businesses.")],
    audio: Annotated[list[Path] | None, typer.Option(help="WAV to say, one an utterance; repeat.")] = None,
    say: Annotated[list[str] | None, typer.Option(help="Text to say, one an utterance; repeat.")] = None,
    loss: Annotated[Path | None, typer.Option(help="0/1 loss trace, or *.delay_ms.txt delays.")] = None,
    drop_after: Annotated[
        float | None, typer.Option(help="The line drops after so many seconds.", min=0)
    ] = None,
    dtmf: Annotated[str, typer.Option(help="Keys to press after the utterances.")] = "",
    record: Annotated[Path | None, typer.Option(help="Write both sides to this stereo WAV.")] = None,
) -> None:
    """A simulated phone: calls a running service as Twilio would. Signs with TWILIO_AUTH_TOKEN over IVR_PUBLIC_URL.

    Example: ivr call --from +12025550143 --to +16175550140 --say "What does a check-up cost?" http://127.0.0.1:8080
    """
    settings = _settings()
    plan = simulate.Plan(url, from_, to, tuple(audio or ()), tuple(say or ()), loss, drop_after, dtmf, record)
    raise typer.Exit(_run(simulate.place(settings, plan, out)))


@calls_app.command("list")
def calls_list(
    business: Annotated[str, typer.Option(help="The business's id; default: all of them.")] = "",
    limit: Annotated[int, typer.Option(help="So many of each business, newest first.", min=1)] = 20,
) -> None:
    """List calls, newest first."""
    _run(print_calls(_settings(), out, business, limit))


@calls_app.command("show")
def calls_show(
    call_sid: Annotated[str, typer.Argument(help="The CallSid, as `ivr calls list` shows it.")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show a call turn by turn: heard and said, window, tokens, cost, delay."""
    _run(print_call(_settings(), out, call_sid, as_json=as_json))


Number = Annotated[str, typer.Argument(help="The caller's number, as +12025550143.")]
BusinessId = Annotated[
    str, typer.Option("--business", help="The business's id: no business sees another's callers.")
]


@flows_app.command("override")
def flows_override(
    business: Annotated[str, typer.Argument(help="The business's id.")],
    state: Annotated[str, typer.Argument(help="open, closed or normal; left out: show what is set.")] = "",
    hours: Annotated[str, typer.Option(help="A schedule's name; all of them when left out.")] = "",
    until: Annotated[str, typer.Option(help="3h, 2d, or 2026-12-24T18:00 local at the business.")] = "",
) -> None:
    """Open or close a business by hand until a time, whatever its file says; `normal` takes it back.

    It holds from now on in every worker, also in calls that are under way. Example: ivr flows override bella-tavola
    closed --until 2026-12-24T18:00
    """
    _run(set_hours(_settings(), out, business, state, hours, until))


@voicemail_app.command("list")
def voicemail_list(
    business: BusinessId,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="So many, newest first.")] = 20,
) -> None:
    """List a business's messages: recording, time, length, and what was said where that is written.

    Example: ivr voicemail list --business northside-plumbing
    """
    _run(print_messages(_settings(), out, business, limit))


@voicemail_app.command("show")
def voicemail_show(
    recording: Annotated[str, typer.Argument(help="The recording, as `ivr voicemail list` shows it.")],
    business: BusinessId,
) -> None:
    """Show one message, with all of what was said where that is written down.

    Example: ivr voicemail show RE0123 --business northside-plumbing
    """
    _run(show_message(_settings(), out, business, recording))


@voicemail_app.command("save")
def voicemail_save(
    recording: Annotated[str, typer.Argument(help="The recording, as `ivr voicemail list` shows it.")],
    file: Annotated[Path, typer.Argument(help="The WAV file to write.")],
    business: BusinessId,
) -> None:
    """Write a message's recording to a file.

    Example: ivr voicemail save RE0123 message.wav --business northside-plumbing
    """
    _run(save_message(_settings(), out, business, recording, file))


@callers_app.command("show")
def callers_show(
    number: Number,
    business: BusinessId,
    as_json: Annotated[
        bool, typer.Option("--json", help="All of it, for programs or for the caller.")
    ] = False,
) -> None:
    """Show what is kept of a caller: calls, turns, topics. With --json every word; audio lies in IVR_AUDIO_URL.

    Example: ivr callers show +12025550143 --business harbor-dental --json
    """
    _run(show_caller(_settings(), out, number, business, as_json=as_json))


@callers_app.command("forget")
def callers_forget(
    number: Number,
    business: BusinessId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase a caller at a business: calls, words, audio, memory. It cannot be undone.

    A call of theirs that is under way loses its memory too. The erasure is noted as a keyed hash in
    IVR_DATA_DIR/erasures.jsonl, and done again by `ivr serve` should an older backup be restored.
    """

    def confirm(question: str) -> None:
        if not yes:
            typer.confirm(question, abort=True)

    _run(forget_caller(_settings(), out, number, business, confirm))


@callers_app.command("enrol")
def callers_enrol(
    number: Number,
    business: BusinessId,
    remove: Annotated[bool, typer.Option("--remove", help="Take the PIN away.")] = False,
) -> None:
    """Give a caller a PIN, by which they show who they are in a `verify` node. You are asked for it; it is not shown.

    Needs IVR_PIN_PEPPER, the same on every machine: with another one no PIN is right any more.
    """

    def ask() -> str:
        pin: str = typer.prompt("PIN (6 to 12 digits)", hide_input=True, confirmation_prompt=True)
        return pin

    _run(enrol_caller(_settings(), out, number, business, None if remove else ask))


@callers_app.command("keep")
def callers_keep(number: Number, business: BusinessId) -> None:
    """Undo that a caller asked, by voice, to be forgotten: within a day of it, before it is carried out."""
    _run(keep_caller(_settings(), out, number, business))


@callers_app.command("share")
def callers_share(
    number: Number,
    business: BusinessId,
    no: Annotated[bool, typer.Option("--no", help="It is one person's after all.")] = False,
) -> None:
    """Say that several people use a number: then nothing of its past is told to who calls from it.

    The service says so itself where it notices two people, or two calls at once.

    Example: ivr callers share +12025550143 --business harbor-dental --no
    """
    _run(share_caller(_settings(), out, number, business, is_shared=not no))


@numbers_app.command("list")
def numbers_list(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """List the account's numbers: where their calls go, and which business answers them.

    Needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and IVR_PUBLIC_URL. Changes nothing.
    """
    list_numbers(_settings(), out, as_json=as_json)


@numbers_app.command("connect")
def numbers_connect(
    number: Annotated[str, typer.Argument(help="One of the account's numbers, as +16175550140.")],
) -> None:
    """Send a number's calls to this service: voice webhook and status callback at IVR_PUBLIC_URL.

    Prints what they were before. Example: IVR_PUBLIC_URL=https://ivr.example.com ivr numbers connect +16175550140
    """
    connect_number(_settings(), out, number)


@app.command("costs")
def costs_command(
    business: Annotated[str, typer.Option(help="The business's id; default: all of them.")] = "",
    month: Annotated[str, typer.Option(help="Only this month of the business's zone, like 2026-11.")] = "",
    by: Annotated[CostKey, typer.Option(help="What to add up by.")] = CostKey.MONTH,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """What calls have cost, by the estimate made with each turn. `ivr calls show` has it turn by turn.

    Example: ivr costs --business corner-bakery --month 2026-11 --by caller
    """
    _run(print_costs(_settings(), out, CostQuery(business, month, by), as_json=as_json))


@db_app.command("reembed")
def db_reembed() -> None:
    """Embed every page that IVR_EMBEDDING_MODEL has not embedded, after a change of model. Broken off, it goes on.

    Calls go on meanwhile; pages without vectors of the model are found by their words.

    Example: IVR_EMBEDDING_MODEL=BAAI/bge-small-en-v1.5 ivr db reembed
    """
    _run(reembed_all(_settings(), out))


@db_app.command("upgrade")
def db_upgrade(
    service_role: Annotated[
        str | None,
        typer.Option(help="A role that the service is to connect as: it is granted the use of the tables."),
    ] = None,
) -> None:
    """Bring the database (IVR_DATABASE_URL, else the embedded one) to this version's schema. Safe to run twice.

    Run it as the owner of the tables, and the service as another role, which row-level security binds.

    Example: IVR_DATABASE_URL=postgresql://owner@db/ivr ivr db upgrade --service-role callthread
    """
    _run(migrate_database(_settings(), out, service_role))
