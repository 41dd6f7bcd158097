"""The import rules of docs/design.md: who may import whom, no cycles, no imports inside functions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("ivr", "memory", "callflows")

ALLOWED: dict[str, tuple[str, ...]] = {
    "ivr.core": ("ivr.core", "callflows.model", "callflows.engine", "memory.model"),
    "ivr.audio": ("ivr.audio", "ivr.errors"),
    "ivr.wire": ("ivr.wire", "ivr.core.events", "ivr.core.commands", "ivr.core.units"),
    "ivr.ports": ("ivr.core.events", "ivr.core.commands", "memory.model"),
    "ivr.errors": (),
    "ivr.settings": ("ivr.errors",),
    "ivr.observe": ("ivr.errors",),
    "ivr.adapters": (
        "ivr.adapters",
        "ivr.ports",
        "ivr.wire",
        "ivr.core.events",
        "ivr.core.commands",
        "ivr.core.units",
        "ivr.audio",
        "ivr.errors",
        "ivr.observe",
    ),
    "ivr.call": (
        "ivr.core",
        "ivr.ports",
        "ivr.audio",
        "ivr.errors",
        "ivr.observe",
        "ivr.recorded",
        "ivr.writing",
        "memory.model",
    ),
    "ivr.writing": ("ivr.core.commands", "ivr.ports", "ivr.errors", "memory.model"),
    "ivr.recorded": ("ivr.core", "ivr.ports", "ivr.audio", "ivr.errors"),
    "ivr.pacing": (),
    "ivr.web": (
        "ivr.web",
        "ivr.call",
        "ivr.ports",
        "ivr.wire",
        "ivr.adapters",
        "ivr.errors",
        "ivr.settings",
        "ivr.observe",
    ),
    # The outside world sees the service by its protocols only.
    "ivr.phone": ("ivr.phone", "ivr.wire", "ivr.audio", "ivr.errors"),
    "ivr.sandbox": ("ivr.sandbox", "ivr.wire", "ivr.audio", "ivr.errors"),
    "callflows": ("callflows",),
    "memory": ("memory",),
}
"""The longest key that begins a module's name holds. Modules without one (the composition roots) may import all."""

PURE = {
    "asyncio",
    "time",
    "random",
    "secrets",
    "os",
    "logging",
    "structlog",
    "socket",
    "threading",
    "msgspec",
}
SQL = ("memory.schema", "memory.database", "memory.store", "memory.jobs", "memory.jobqueue", "memory.migrate")


def modules() -> list[tuple[str, Path]]:
    return [
        (".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide who imports whom"
            assert node.module is not None
            yield node.module, node
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def rule_for(module: str) -> tuple[str, ...] | None:
    keys = [key for key in ALLOWED if module == key or module.startswith(f"{key}.")]
    return ALLOWED[max(keys, key=len)] if keys else None


PROCESSES = {
    "ivr.__main__",
    "ivr.child",
    "ivr.sandbox.ear_process",
    "ivr.sandbox.voice_process",
    "ivr.bench.bridges.pass_through",
    "ivr.bench.bridges.soxr_bridge",
    "ivr.bench.chaos_worker",
    "memory.embed_worker",
}
"""What is started as a process of its own, by its name; everything else must be imported by one of them."""
UNUSED_YET: set[str] = set()
"""Built and tested for parts that are still to come."""


def ours(name: str) -> bool:
    return name.split(".")[0] in PACKAGES


def within(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == a or name.startswith(f"{a}.") or a.startswith(f"{name}.") for a in allowed)


MODULES = modules()
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES}


@pytest.mark.parametrize("module", TREES)
def test_imports_only_what_it_may(module: str) -> None:
    allowed = rule_for(module)
    if allowed is None:
        assert module.startswith("ivr"), "only the composition roots of ivr may import everything"
        return
    wrong = {name for name, _ in imported(TREES[module]) if ours(name) and not within(name, allowed)}
    assert not wrong


@pytest.mark.parametrize("module", [m for m in TREES if m.startswith("ivr.core")])
def test_the_core_is_pure(module: str) -> None:
    assert not {name for name, _ in imported(TREES[module]) if name.split(".")[0] in PURE}
    assert not [n for n in ast.walk(TREES[module]) if isinstance(n, ast.AsyncFunctionDef | ast.Await)]


@pytest.mark.parametrize("module", TREES)
def test_no_import_inside_a_function(module: str) -> None:
    inner = [
        f"{module}:{statement.lineno}"
        for function in ast.walk(TREES[module])
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for _, statement in imported(function)
    ]
    assert not inner


@pytest.mark.parametrize("module", [m for m in TREES if not m.startswith(SQL)])
def test_sql_only_in_memorys_store(module: str) -> None:
    used = {name for name, _ in imported(TREES[module]) if name.split(".")[0] in ("sqlalchemy", "psycopg")}
    assert not used or module in ("memory.embedded",), used


def test_there_is_no_cycle() -> None:
    known = set(TREES)
    edges = {m: {n for n, _ in imported(TREES[m]) if n in known and n != m} for m in known}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in sorted(edges[module]):
                visit(target, (*path, module))
            done.add(module)

    for module in sorted(known):
        visit(module, ())


def test_the_composition_roots_are_imported_by_nothing_below() -> None:
    roots = {"ivr.app", "ivr.cli", "ivr.demo"}
    wrong = [
        (m, n)
        for m in TREES
        if rule_for(m) is not None
        for n, _ in imported(TREES[m])
        if n in roots or n.startswith("ivr.bench")
    ]
    assert not wrong


def test_every_process_can_be_started_by_its_name() -> None:
    texts = [path.read_text() for _, path in MODULES]
    for module in PROCESSES - {"ivr.__main__"}:
        name = module.removesuffix(".__main__")
        leaf = name.rpartition(".")[2]
        assert module in TREES
        assert any(f'"{name}"' in text or f'"{leaf}"' in text for text in texts), f"nothing starts {module}"


def test_every_module_is_part_of_some_process() -> None:
    """A package counts as part of one with any of its modules."""
    reached: set[str] = set()
    waiting = [*PROCESSES]
    while waiting:
        module = waiting.pop()
        if module in TREES and module not in reached:
            reached.add(module)
            waiting += [name for name, _ in imported(TREES[module]) if ours(name)]
            waiting.append(module.rpartition(".")[0])
    assert set(TREES) - reached == UNUSED_YET
