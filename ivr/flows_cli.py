"""`ivr flows`: what a business's owner does with flow files. Nothing here needs a network or a database."""

import contextlib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from callflows.check import check_paths
from callflows.diagram import differences, mermaid
from callflows.faults import FlowErrors
from callflows.model import Business
from callflows.parse import read_files
from callflows.reference import reference
from callflows.schema import included_schema, json_schema
from callflows.scripts import TestResult, run_script, script_files
from ivr.errors import CallthreadError, ConfigError
from ivr.flow_terminal import Terminal, moment_of
from ivr.foundations import flow_folder
from ivr.settings import ModelSource, Settings

flows_app = typer.Typer(help="Call flows: one YAML file for each business.", no_args_is_help=True)
out = Console(highlight=False)


def _print(text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)


def _existing(path: Path | None) -> Path:
    where_to = path or flow_folder(Settings.load())
    if not where_to.exists():
        raise CallthreadError(f"{where_to}: there is no such file or folder")
    return where_to


def _has_voice() -> bool:
    """Exact words are said exactly here; also where the settings are wrong, which is not what is asked."""
    with contextlib.suppress(ConfigError):
        settings = Settings.load()
        return settings.has_speech_endpoint or settings.model_source is ModelSource.SANDBOX
    return True


def _business(flow: str) -> Business:
    """By the path of its file, or by its id among the service's flows. Raises: `FlowErrors`, `CallthreadError`."""
    path = Path(flow)
    files, errors = read_files(path if path.suffix == ".yaml" else flow_folder(Settings.load()))
    found = [p.business for p in files if p.business is not None and (path.suffix or p.business.id == flow)]
    if found:
        return found[0]
    if errors:
        raise FlowErrors(errors)
    known = [p.business.id for p in files if p.business is not None]
    near = get_close_matches(flow, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"name a .yaml file, or one of {', '.join(known)}"
    raise CallthreadError(f"there is no flow {flow!r}: {hint}")


@flows_app.command("check")
def check(
    path: Annotated[Path | None, typer.Argument(help="A folder or file; default: IVR_CALLFLOWS.")] = None,
) -> None:
    """Check call flows; every fault with file:line:column and how to mend it. Exit code 1 if there is an error."""
    place = _existing(path)
    faults = check_paths(place, has_voice=_has_voice())
    for fault in faults:
        _print(str(fault))
    errors = sum(fault.severity == "error" for fault in faults)
    _print(f"{place}: {errors} errors, {len(faults) - errors} warnings")
    raise typer.Exit(1 if errors else 0)


@flows_app.command("schema")
def schema(
    include: Annotated[
        bool, typer.Option("--include", help="Of a file that others include, not of a business's own.")
    ] = False,
) -> None:
    """Print the JSON Schema of a flow file, for editors.

    Example: ivr flows schema > flow.schema.json
    """
    out.print_json(data=included_schema() if include else json_schema())


@flows_app.command("reference")
def print_reference() -> None:
    """Print every key of a flow file with its meaning, as Markdown (docs/callflows-reference.md)."""
    _print(reference())


@flows_app.command("show")
def show(flow: Annotated[str, typer.Argument(help="A flow file, or a business's id.")]) -> None:
    """Print the flow as a diagram: Mermaid text, which GitHub and many editors draw.

    Example: ivr flows show harbor-dental > flow.mmd
    """
    _print(mermaid(_business(flow)))


@flows_app.command("diff")
def diff(
    old: Annotated[str, typer.Argument(help="A flow file, or a business's id.")],
    new: Annotated[str, typer.Argument(help="Another.")],
) -> None:
    """Tell what a new flow file adds (+), takes out (-) and changes (~). Exit code 1 if there is a difference."""
    lines = differences(_business(old), _business(new))
    for line in lines:
        _print(line)
    raise typer.Exit(1 if lines else 0)


@flows_app.command("test")
def test(
    path: Annotated[
        Path | None, typer.Argument(help="A folder or *.test.yaml; default: IVR_CALLFLOWS.")
    ] = None,
) -> None:
    """Run the recorded conversations (*.test.yaml) of flow files. Exit code 1 if one goes another way."""
    scripts = script_files(_existing(path))
    if not scripts:
        raise CallthreadError(f"{path or 'IVR_CALLFLOWS'}: no *.test.yaml here; docs/callflows.md shows one")
    results = [result for script in scripts for result in run_script(script)]
    failed = sum(_told(result) for result in results)
    _print(f"{len(results)} tests, {failed} failed")
    raise typer.Exit(1 if failed else 0)


def _told(result: TestResult) -> bool:
    _print(f"{'FAILED' if result.faults else 'ok':6} {result.file}: {result.name}")
    for fault in result.faults:
        _print(f"       {fault}")
    return bool(result.faults)


@flows_app.command("simulate")
def simulate(
    flow: Annotated[str, typer.Argument(help="A flow file, or a business's id.")],
    at: Annotated[
        str, typer.Option(help="When: 2026-12-24T09:30, local at the business; default: now.")
    ] = "",
    from_: Annotated[
        str, typer.Option("--from", help="The caller's number, like +12025550143; default: withheld.")
    ] = "",
    script: Annotated[Path | None, typer.Option(help="A *.test.yaml to run and compare instead.")] = None,
) -> None:
    """Try a flow in the terminal by typing words and keys; no network, no model. Secrets are masked.

    Example: ivr flows simulate harbor-dental --at 2026-12-24T09:30 --from +12025550143
    """
    if script is not None:
        raise typer.Exit(1 if sum(_told(result) for result in run_script(script)) else 0)
    business = _business(flow)
    moment = moment_of(business, at, from_)
    Terminal(business, moment, _print).run(_lines())


def _lines() -> Iterator[str]:
    """What is typed, until Ctrl-D or Ctrl-C."""
    while True:
        try:
            yield input("> ")
        except (EOFError, KeyboardInterrupt):
            out.print()
            return
