"""`include:`, the parts of a flow file that stand in other files: read, and joined into one document with all places.

A name, or a part, that is given twice is a fault; lists are joined, the file's own items first. The joined text
stands for itself: a call that goes on with it later needs none of the files.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from callflows.document import MAX_BYTES, MAX_NODES, Document, Place, read_document, short
from callflows.document import Path as DocumentPath
from callflows.faults import FlowErrors, FlowFault

INCLUDE = "include"
OWN = ("id", "name", "numbers", "start")
"""What makes a business: never shared."""
MAX_FILES = 50
MAX_FOLDERS = 3
"""Included files stand at most so many folders below the flow file: changes are looked for there."""
_NAMED = frozenset({"languages", "hours", "transfers", "tools", "rotas", "flows", "nodes"})
_LISTED = frozenset({"facts", "documents", "allow_hosts", "webhooks", "emergency"})

Read = Callable[[Path, str], str]
"""The text of a file by its path and the name that faults call it by. Raises: `FlowErrors`."""


def joined(document: Document, folder: Path | None, read: Read) -> list[FlowFault]:
    """Put what `document` includes into it. `folder`: the flow file's; None for a text that is no file.

    Returns the faults of all files; what can be had is joined whatever they are.
    """
    if INCLUDE not in document.mapping():
        return []
    if folder is None:
        return [document.fault((INCLUDE,), "a text without a file can include none", at_key=True)]
    join = _Join(document, folder.resolve(), read)
    join.all_of(document, folder, ())
    del document.value[INCLUDE]
    if join.size_bytes > MAX_BYTES or len(document.values) > MAX_NODES:
        message = "too much with all that is included"
        join.faults.append(document.fault((INCLUDE,), message, "at most 1 MB and 20,000 values", at_key=True))
    return join.faults


def as_text(document: Document) -> str:
    """The joined document as YAML that reads as the same values."""
    return yaml.dump(
        document.value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=MAX_BYTES, line_break="\n"
    )


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@dataclass(slots=True)
class _Join:
    """One flow file being put together."""

    whole: Document
    root: Path
    read: Read
    faults: list[FlowFault] = field(default_factory=list)
    size_bytes: int = 0
    seen: set[Path] = field(default_factory=set)

    def all_of(self, document: Document, folder: Path, above: tuple[Path, ...]) -> None:
        """Every file that `document`, a file of `folder`, includes, in its order."""
        listed = document.at(INCLUDE)
        if not isinstance(listed, list) or not listed:
            hint = "like include: [shared/hours.yaml]"
            self.faults.append(document.fault((INCLUDE,), "must be a list of files", hint))
            return
        for index, name in enumerate(listed):
            at: DocumentPath = (INCLUDE, index)
            try:
                path = _inside(name, folder, self.root)
            except ValueError as error:
                self.faults.append(document.fault(at, str(error), "like shared/hours.yaml"))
                continue
            if path in above:
                circle = " → ".join(each.name for each in (*above[above.index(path) :], path))
                self.faults.append(document.fault(at, f"a file includes itself: {circle}", "take one out"))
            elif path not in self.seen:
                self._one(document, at, path, above)

    def _one(self, document: Document, at: DocumentPath, path: Path, above: tuple[Path, ...]) -> None:
        self.seen.add(path)
        if self.size_bytes > MAX_BYTES:
            return
        if len(self.seen) > MAX_FILES:
            if len(self.seen) == MAX_FILES + 1:
                self.faults.append(document.fault(at, f"more than {MAX_FILES} files are included"))
            return
        name = str(Path(self.whole.file).parent / path.relative_to(self.root))
        if not path.is_file():
            hint = "paths start at the folder of the file that includes"
            self.faults.append(document.fault(at, f"there is no file {short(name)}", hint))
            return
        try:
            text = self.read(path, name)
            self.size_bytes += len(text.encode())
            part, faults = read_document(text, name)
        except FlowErrors as errors:
            self.faults += errors.faults
            return
        self.faults += faults
        if not isinstance(part.value, dict):
            self.faults.append(FlowFault(name, 1, 1, "an included file is a mapping", "like a flow file"))
            return
        self._join(part)
        if INCLUDE in part.value:
            self.all_of(part, path.parent, (*above, path))

    def _join(self, part: Document) -> None:
        for key, value in part.value.items():
            mine = self.whole.at(key)
            if key in (INCLUDE, "version"):
                continue
            if key in OWN:
                message = f"`{key}` is each business's own"
                self.faults.append(part.fault((key,), message, "give it in the flow file", at_key=True))
            elif key not in self.whole.value:
                self.whole.value[key] = value
                self._places(part, (key,), (key,))
            elif key in _NAMED and isinstance(mine, dict) and isinstance(value, dict):
                for name, each in value.items():
                    if self._is_new(part, (key, name)):
                        mine[name] = each
                        self._places(part, (key, name), (key, name))
            elif key in _LISTED and isinstance(mine, list) and isinstance(value, list):
                for index, each in enumerate(value):
                    self._places(part, (key, index), (key, len(mine)))
                    mine.append(each)
            else:
                self._is_new(part, (key,))

    def _is_new(self, part: Document, path: DocumentPath) -> bool:
        first = self.whole.keys.get(path)
        if first is None:
            return True
        message = f"`{short(str(path[-1]))}` is given twice"
        hint = f"first in {first.file}:{first.line}:{first.column}; leave one of them"
        self.faults.append(part.fault(path, message, hint, at_key=True))
        return False

    def _places(self, part: Document, source: DocumentPath, to: DocumentPath) -> None:
        """What stands at `source` in `part` stands at `to` in the whole, with its places."""
        depth = len(source)
        here: tuple[tuple[dict[DocumentPath, Place], dict[DocumentPath, Place]], ...]
        here = ((part.keys, self.whole.keys), (part.values, self.whole.values))
        for places, known in here:
            known.update({(*to, *path[depth:]): at for path, at in places.items() if path[:depth] == source})


def _inside(name: object, folder: Path, root: Path) -> Path:
    """The file that `name` means in `folder`. Raises: ValueError for one that may not be included."""
    if not isinstance(name, str) or len(name) > 200 or "\\" in name:
        raise ValueError("must be the path of a file")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.suffix != ".yaml":
        raise ValueError("not a .yaml file in a folder below the flow file's, without `..`")
    try:
        found = (folder / path).resolve()
    except (OSError, ValueError, RuntimeError):  # a link to itself
        raise ValueError("not a path") from None
    if not found.is_relative_to(root):
        raise ValueError("leads out of the flow file's folder")
    folders = len(found.relative_to(root).parts) - 1
    if folders == 0:
        raise ValueError("the flow file's own folder holds businesses: put what they share into one below it")
    if folders > MAX_FOLDERS:
        raise ValueError(f"more than {MAX_FOLDERS} folders below the flow file")
    return found
