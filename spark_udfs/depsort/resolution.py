"""Every symbol of a file with the files that define it, and the weight each adds to an edge.

1. Imports are followed to the file that defines the name, through aliases and chains of re-exports.
2. References are resolved by imports, peers and star imports (`spark_udfs.depsort.references`), or through
   the types that files declare (`spark_udfs.depsort.type_chains`). They weigh the square root of their
   count, spread over the defining files, and less where only functions use them
   (`spark_udfs.depsort.late_uses`).
3. The rest belongs to the language (`builtin`), is outside the repository (`external`), or is `ambiguous`:
   too many files define the name, or none at hand.

`spark_udfs.depsort.weights` has the weights of imports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spark_udfs.depsort.late_uses import bound_late_uses
from spark_udfs.depsort.model import FileSymbols, Import
from spark_udfs.depsort.names import Family
from spark_udfs.depsort.pasted_names import with_pasted_names
from spark_udfs.depsort.references import ReferenceResolver, Symbol, internal
from spark_udfs.depsort.type_chains import EXPECTED, TypedChains
from spark_udfs.depsort.weights import AROUND, DEFERRED, WEAK

MAX_EXPANDED = 20_000  # references of a file, including those of the macros it uses


class Repository(ReferenceResolver):
    """The files of one family of languages in a repository, numbered in order of path."""

    def __init__(self, family: Family) -> None:
        super().__init__(replace(family, files=with_pasted_names(family.files)))
        self._expansions: dict[str, dict[str, None]] = {}  # macro -> the names in its body
        for file in self.files:
            for name, words in file.expansions.items():
                whole = (word for word in words if "#" not in word)
                self._expansions.setdefault(name, {}).update(dict.fromkeys(whole))
        typed = all(language.typed_chains for language in self.languages)
        builtins = [language.builtins for language in self.languages]
        self._chains = TypedChains(self.modules, self.paths, self.files, builtins) if typed else None

    def symbols(self, index: int) -> list[Symbol]:
        """Every symbol of a file: definitions, imports, references, each by name."""
        file = self.files[index]
        definitions = [Symbol("definition", *pair, "definition") for pair in file.definitions.items()]
        if self._chains is None:
            imports, at_hand, loaded = self._imports(index)
        else:
            imports, at_hand, loaded = self._typed_imports(index), set(), set()
        used_at_load = None if file.at_load is None else frozenset(file.at_load)
        merged: dict[str, Symbol] = {}
        for name, count in self._expanded(file).items():
            references = self._typed(index, name) if self._chains else (self.reference(index, name, at_hand),)
            late = used_at_load is not None and name not in used_at_load
            for symbol in references:
                symbol.late = late
                if (same := merged.get(symbol.name)) is not None:
                    same.count += count
                    same.late &= late
                    for file_used, factor in symbol.weights.items():
                        same.weights[file_used] = max(factor, same.weights.get(file_used, 0.0))
                else:
                    symbol.count = count
                    merged[symbol.name] = symbol
        if self.constants is not None:
            for name, homes in self.constants.homes(index):
                opened = Symbol("reference", name, 1, "internal", dict.fromkeys(homes, AROUND), late=True)
                merged.setdefault(name, opened)
        for symbol in merged.values():
            weights = symbol.weights
            if weights:
                weights.pop(index, None)
                apart = [target for target in weights if self.modules.never_built_together(index, target)]
                for excluded in apart:
                    del weights[excluded]
                if apart and not weights:
                    symbol.resolution = "ambiguous"
                share = math.sqrt(symbol.count) / max(1, len(weights))
                symbol.weights = {f: factor * share for f, factor in weights.items()}
            if not symbol.weights and symbol.resolution == "internal":
                symbol.resolution = "local"
        uses = list(merged.values())
        if used_at_load is not None:
            bound_late_uses(imports, uses, loaded)
        return [*definitions, *imports, *uses]

    def _expanded(self, file: FileSymbols) -> Mapping[str, int]:
        """The references of a file and of the macros it uses, MAX_EXPANDED at most."""
        if not self._expansions:
            return file.references
        references = dict(file.references)
        pending = [name for name in references if name in self._expansions]
        for name in pending:
            for word in self._expansions[name]:
                if word not in references and len(references) < MAX_EXPANDED:
                    references[word] = references[name]
                    if word in self._expansions:
                        pending.append(word)
        return references

    # Imports

    def _imports(self, index: int) -> tuple[list[Symbol], set[int], set[int]]:
        """The rows of a file's imports, the files they name outside functions, and the files these load."""
        rows: dict[str, Symbol] = {}
        at_hand: set[int] = set()
        loaded: set[int] = set()
        for item in self.files[index].imports:
            row = rows.setdefault(item.written, Symbol("import", item.written, 0, "external"))
            row.count += item.count
            targets, passed, around = self._imported_files(index, item)
            if not item.deferred:
                at_hand.update(targets)
                loaded.update(targets, passed)
            weights = dict.fromkeys(around, AROUND) | dict.fromkeys(passed, WEAK)
            weights.update(
                dict.fromkeys(targets, (DEFERRED if item.deferred else 1.0) / max(1, len(targets)))
            )
            weights.pop(index, None)
            if weights:
                row.resolution = "internal"
            for file, weight in weights.items():
                row.weights[file] = max(weight, row.weights.get(file, 0.0))
        return list(rows.values()), at_hand, loaded

    def _imported_files(self, index: int, item: Import) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The files an import names, the files it passes on the way, and files of the packages around it."""
        address = self.modules.locate(item.module, index)
        if address is None:
            return (), (), ()
        enclosing = set(self.modules.enclosing(index))
        files = self.modules.files(address)
        on_the_way = self.modules.companions(address)
        passed = [f for f in on_the_way if f not in enclosing]
        around = [f for f in on_the_way if f in enclosing]
        if item.name is None or item.name == "*":
            passed += [f for f in files if f in enclosing]
            return [f for f in files if f not in enclosing], passed, around
        meaning = self.nearest_meaning(index, address, self.imported_name(address, item.name))
        if meaning is None:
            return (), (), ()
        if len(files) == 1:
            (around if files[0] in enclosing else passed).append(files[0])
        return meaning.files, [*passed, *meaning.via], around

    # Languages that declare types

    def _typed_imports(self, index: int) -> list[Symbol]:
        """The rows of a file's imports; importing a whole package adds nothing to the uses of its names."""
        assert self._chains is not None
        rows: dict[str, Symbol] = {}
        for item in self.files[index].imports:
            row = rows.setdefault(item.written, Symbol("import", item.written, 0, "external"))
            row.count += item.count
            inside, files = self._chains.imported(index, item)
            if inside:
                row.resolution = "internal"
            row.weights.update({file: 1.0 / len(files) for file in files if file != index})
        return list(rows.values())

    def _typed(self, index: int, name: str) -> Iterator[Symbol]:
        """One reference per step of a chain, and one more where the chain leaves the repository."""
        assert self._chains is not None
        if name.startswith(EXPECTED):
            if files := self._chains.expected(index, name.removeprefix(EXPECTED)):
                yield internal(name.removeprefix(EXPECTED), files)
            return
        if name.startswith("."):
            added = self._chains.extension(index, name[1:])
            if added is not None:
                yield internal(name, added.files)
            else:
                yield Symbol("reference", name, 0, "ambiguous" if name[1:] in self.members else "external")
            return
        walk = self._chains.walk(index, name)
        for step, files in walk.steps:
            yield internal(step, files)
        if walk.end is not None:
            last = walk.outside.rpartition(".")[2]
            somewhere = "ambiguous" if last in self.members or last in self.named_in else "external"
            yield Symbol("reference", walk.outside, 0, somewhere if walk.end == "unknown" else walk.end)
