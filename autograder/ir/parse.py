"""Triton IR text → records. Pure text work: the judge reads hostile IR with this and nothing else.

The grammar is what MLIR prints for `tt`, `arith`, `math`, `scf` and `cf` operations: one operation
a line, regions in braces, locations as `loc(...)`. Operands are the `%names` of an operation in the
order of its text, attributes are `key = value` pairs, types follow the last ` : `.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from autograder.records import CouldNotCheck

_DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "i1": "bool",
    # Descriptors keep the sign that values leave to the operations.
    **{f"{sign}i{bits}": f"int{bits}" for sign in "su" for bits in (8, 16, 32, 64)},
    "index": "int64",
}
MAX_TEXT = 4_000_000  # characters; the largest kernel of the course lowers to about 60 000
MAX_DEPTH = 60  # nested regions


@dataclass(frozen=True, slots=True)
class Type:
    """``kind`` is "value", "pointer" (a pointer or a tensor of them), "block" (block pointer) or
    "descriptor"; ``shape`` is () for a scalar; ``dtype`` is the element's or pointee's."""

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()


@dataclass(slots=True)
class Op:
    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    text: str  # between the name and the types: operands and attributes as printed
    types: tuple[Type, ...]  # all types as printed, results last
    result_types: tuple[Type, ...]
    regions: tuple[Region, ...] = ()
    successors: tuple[
        tuple[str, tuple[str, ...]], ...
    ] = ()  # cf.br, cf.cond_br: (block, arguments)
    line: int = 0  # line in the student's file, 0 where there is none
    variable: str = ""  # the student's name for the result, if there is one
    cache: object = None  # what an operation works out once: a constant, an attribute

    def attribute(self, key: str, default: str | None = None) -> str | None:
        """The printed value of an attribute, up to its type: ``axis = 0 : i32`` → ``"0"``."""
        match = re.search(rf"\b{key} = (array<[^>]*>|\"[^\"]*\"|[\w.+-]+)", self.text)
        return match[1] if match else default

    @property
    def callee(self) -> str:
        """The function that a tt.call names."""
        match = re.search(r'@("[^"]+"|[^"(]+)\(', self.text)
        return match[1].strip('"').strip() if match else ""

    def integers(self, key: str) -> tuple[int, ...]:
        """An array attribute: ``order = array<i32: 1, 0>`` → ``(1, 0)``."""
        value = self.attribute(key, "")
        return tuple(int(x) for x in re.findall(r"-?\d+", value.partition(":")[2]))


@dataclass(slots=True)
class Block:
    label: str
    arguments: tuple[str, ...]
    ops: list[Op] = field(default_factory=list)


@dataclass(slots=True)
class Region:
    blocks: list[Block]
    free: frozenset[str] = frozenset()  # names used inside that are defined outside

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.blocks[0].arguments

    @property
    def ops(self) -> list[Op]:
        return self.blocks[0].ops


@dataclass(slots=True)
class Function:
    """The kernel: parameter names and types, its body, and the functions it calls (noinline)."""

    name: str
    parameters: tuple[tuple[str, Type], ...]  # (value name without %, type)
    body: Region
    callees: dict[str, Function]
    largest: int | None = None  # elements of its largest tensor, once somebody asked


# ---------------------------------------------------------------- small readers


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "<({[":
            depth += 1
        elif c in ">)}]" and not (c == ">" and i and text[i - 1] == "-"):
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    tail = text[start:]
    return [p.strip() for p in [*parts, tail] if p.strip()]


@lru_cache(maxsize=1024)
def parse_type(text: str) -> Type:
    """One printed type. Unknown ones raise CouldNotCheck."""
    t = text.strip()
    # Triton 3.8 and later write the type of a descriptor short, as <4x8xf32>.
    if match := re.fullmatch(r"(?:!tt\.tensordesc)?<((?:\d+x)+)(\w+)[^>]*>", t) or re.fullmatch(
        r"!tt\.tensordesc<tensor<((?:\d+x)+)(\w+)[^>]*>>", t
    ):
        return Type("descriptor", _dtype(match[2], t), _dims(match[1]))
    if match := re.fullmatch(r"(?:!tt\.ptr)?<tensor<((?:\d+x)+)(\w+)>(?:, \d+)?>", t):
        return Type("block", _dtype(match[2], t), _dims(match[1]))
    if match := re.fullmatch(r"(?:!tt\.ptr)?<(\w+)(?:, \d+)?>", t):
        return Type("pointer", _dtype(match[1], t))
    if match := re.fullmatch(r"tensor<((?:\d+x)*)(.+)>", t):
        inner = parse_type(match[2])
        return Type(inner.kind, inner.dtype, _dims(match[1]))
    return Type("value", _dtype(t, t))


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split("x") if n)


def _dtype(name: str, whole: str) -> str:
    if name not in _DTYPES:
        raise CouldNotCheck(f"The IR interpreter does not know the type {whole!r}.")
    return _DTYPES[name]


_LOC = re.compile(r"\bloc\(")
_SHORT_LOC = re.compile(r'loc\(([^"()]*)\)')  # nearly all: loc(#loc7)


def _strip_locations(line: str) -> tuple[str, str]:
    """Remove every ``loc(...)`` of a line; the text of the last one comes back beside it."""
    last = ""
    while match := _LOC.search(line):
        if short := _SHORT_LOC.match(line, match.start()):
            last = short[1]
            line = line[: match.start()].rstrip(" ") + line[short.end() :]
            continue
        depth, end = 0, match.end() - 1
        quoted = False
        while end < len(line):
            c = line[end]
            if c == '"':
                quoted = not quoted
            elif not quoted:
                depth += (c == "(") - (c == ")")
                if not depth:
                    break
            end += 1
        last = line[match.end() : end]
        line = line[: match.start()].rstrip(" ") + line[end + 1 :]
    return line, last


class _Locations:
    """The table of ``#locN = loc(...)`` lines: finds the line in the student's file."""

    def __init__(self, text: str):
        self.table = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.M))
        self.seen: dict[str, tuple[int, str]] = {}
        self.found: dict[str, tuple[int, str] | None] = {}

    def where(self, location: str) -> tuple[int, str]:
        """(line, variable name) of a location; the innermost place outside Triton's library."""
        if location not in self.seen:
            self.seen[location] = self._resolve(location, 0) or (0, "")
        return self.seen[location]

    def _resolve(self, text: str, depth: int) -> tuple[int, str] | None:
        if depth > 40:
            return None
        text = text.strip()
        if text in self.table:
            # Looked up once: entries that name others twice would double the work at every step.
            if text not in self.found:
                self.found[text] = None
                self.found[text] = self._resolve(self.table[text], depth + 1)
            return self.found[text]
        if match := re.fullmatch(r'"(.*)":(\d{1,7}):\d+(?: to .*)?', text):
            return None if "/triton/language/" in match[1] else (int(match[2]), "")
        if text.startswith("callsite("):
            callee, _, caller = text[len("callsite(") : -1].rpartition(" at ")
            return self._resolve(callee, depth + 1) or self._resolve(caller, depth + 1)
        if match := re.fullmatch(r'"([^"]*)"\((.*)\)', text):
            inner = self._resolve(match[2], depth + 1)
            return (inner[0], match[1]) if inner else None
        return None


# ---------------------------------------------------------------- the parser

_HEAD = re.compile(r'(?:((?:%[\w.$-]+(?::\d+)?(?:, )?)+) = )?"?([a-z_]\w*(?:\.\w+)+)"?(.*)$')
_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET_OR_COLON = re.compile(r"[{\[(<}\])]|(?<!-)>| (?=: )")
_ARGUMENT = re.compile(r"(%[\w.$-]+): (.+)$")


class _Parser:
    def __init__(self, text: str):
        if len(text) > MAX_TEXT:
            raise CouldNotCheck(f"The kernel's IR is larger than {MAX_TEXT} characters.")
        self.locations = _Locations(text)
        self.lines = [
            line
            for raw in text.splitlines()
            if (line := raw.strip()) and not line.startswith(("#", "//", "module"))
        ]
        self.at = 0

    def next(self) -> tuple[str, str]:
        if self.at >= len(self.lines):
            raise CouldNotCheck("The kernel's IR ends in the middle of a region.")
        line, location = _strip_locations(self.lines[self.at])
        self.at += 1
        return line.rstrip(), location

    def functions(self) -> Function:
        found: dict[str, Function] = {}
        kernel = None
        while self.at < len(self.lines):
            line, _ = self.next()
            if not line.startswith("tt.func"):
                continue
            match = re.match(r'tt\.func (public |private )?@("[^"]+"|[^"(]+)\((.*)$', line)
            if not match:
                raise CouldNotCheck(f"The IR interpreter cannot read {line[:80]!r}.")
            head = re.sub(r"\{[^{}]*\}", "", match[3])
            head = head[: self._closing(head)]
            parameters = tuple(
                (m[1], parse_type(m[2])) for p in _split(head) if (m := _ARGUMENT.match(p))
            )
            body, _, _ = self.region(0, [name for name, _ in parameters])
            name = match[2].strip('"')  # Triton 3.6 quotes names, parentheses and all
            function = Function(name, parameters, body, found)
            found[name] = function
            if match[1] == "public ":
                kernel = function
        if kernel is None:
            raise CouldNotCheck("The kernel's IR holds no public function.")
        return kernel

    @staticmethod
    def _closing(text: str) -> int:
        depth = 1
        for i, c in enumerate(text):
            depth += (c == "(") - (c == ")")
            if not depth:
                return i
        return len(text)

    def region(self, depth: int, arguments: list[str]) -> tuple[Region, str, str]:
        """Reads up to the line that begins with ``}``: the region, that line and its location."""
        if depth > MAX_DEPTH:
            raise CouldNotCheck(f"The kernel nests more than {MAX_DEPTH} regions.")
        blocks = [Block("entry", tuple(arguments))]
        while True:
            line, location = self.next()
            if line.startswith("}"):
                region = Region(blocks)
                region.free = _free_names(region)
                return region, line, location
            if line.startswith("^"):
                match = re.match(r"\^(\w+)(?:\((.*)\))?:", line)
                names = tuple(_VALUE.findall(match[2] or ""))
                if blocks[-1].label == "entry" and not blocks[-1].ops and len(blocks) == 1:
                    blocks = []  # a region whose first block is labelled
                blocks.append(Block(match[1], names))
                continue
            blocks[-1].ops.append(self.op(line, location, depth))

    def op(self, line: str, location: str, depth: int) -> Op:
        regions: list[Region] = []
        if line.endswith("{"):
            _, name, opened = _head(line)
            line = line[:-2] if line.endswith("({") else line[:-1]
            arguments = _loop_names(name, opened)
            while True:
                region, end, end_location = self.region(depth + 1, arguments)
                regions.append(region)
                location = end_location or location
                if end.startswith(("} else {", "} do {", "}, {")):
                    arguments = []
                    continue
                line += end[2:] if end.startswith("})") else end[1:]
                break
        read = _operation if regions or len(line) > _LONGEST_KEPT else _kept_operation
        return Op(*read(line, tuple(regions)), *self.locations.where(location))


def _head(line: str) -> tuple[str, str, str]:
    """What an operation defines, its name, and the rest of its line."""
    match = _HEAD.match(line)
    if not match:
        raise CouldNotCheck(f"The IR interpreter cannot read {line[:80]!r}.")
    return match[1] or "", match[2], match[3]


def _operation(line: str, regions: tuple[Region, ...]) -> tuple:
    """The operation that a line says, wherever it stands: an Op's fields up to its place."""
    names, name, rest = _head(line)
    results: list[str] = []
    for part in names.split(", "):
        if ":" in part:
            base, count = part.split(":")
            results += [f"{base}#{i}" for i in range(int(count))]
        elif part:
            results.append(part)
    text, types, result_types = _types(name, rest, len(results))
    successors = tuple(
        (label, tuple(_VALUE.findall(args or "")))
        for label, args in re.findall(r"\^(\w+)(?:\(([^)]*)\))?", rest)
    )
    named = _QUOTED.sub("", text)  # a message may hold what looks like a name
    operands = tuple(_VALUE.findall(named.partition("^")[0] if successors else named))
    if name in ("scf.for", "scf.while"):  # the header also names what it defines
        operands = tuple(o for o in operands if o not in regions[0].arguments)
    return name, tuple(results), operands, text, types, result_types, regions, successors


# The kernels that one call launches, and those that a class writes, share most of their lines.
_kept_operation = lru_cache(maxsize=2048)(_operation)
_LONGEST_KEPT = 300  # characters


def _loop_names(name: str, opened: str) -> list[str]:
    """Names that a region header defines: the induction variable, then the carried values."""
    if name == "scf.for":
        induction = re.search(r"(%[\w.$-]+) =", opened)[1]
        carried = re.search(r"iter_args\((.*?)\) ->", opened)
        return [induction, *re.findall(r"(%[\w.$-]+) =", carried[1] if carried else "")]
    if name == "scf.while":
        carried = re.search(r"scf\.while \((.*?)\) :|^ *\((.*?)\) :", opened)
        return re.findall(r"(%[\w.$-]+) =", (carried[1] or carried[2]) if carried else "")
    return []


def _types(name: str, rest: str, results: int) -> tuple[str, tuple[Type, ...], tuple[Type, ...]]:
    """Split ``rest`` into text and types. Region operations of scf carry no types that we need."""
    if name.startswith(("scf.", "cf.")) or name in ("tt.return", "tt.print", "tt.assert"):
        text = re.split(r" : (?=[^{}]*$)", rest)[0] if not name.startswith("scf.") else rest
        if name in ("scf.yield", "scf.condition"):
            text = rest.rpartition(" : ")[0] or rest
        return text, (), ()
    at = _type_colon(rest)
    if at < 0:
        return rest, (), (Type("value", "bool"),) if name == "arith.constant" else ()
    text, printed = rest[:at], rest[at + 3 :]
    known = []
    for part in re.split(r" -> | to |=(?= )", printed):
        part = part.strip()
        if part.startswith("(") and part.endswith(")"):
            part = part[1:-1]
        for piece in _split(part.replace(" * ", ", ")):
            known.append(parse_type(piece))
    types = tuple(known)
    return text, types, types[-results:] if results else ()


def _type_colon(text: str) -> int:
    """Position of the last ` : ` outside brackets, or −1."""
    depth, found = 0, -1
    for match in _BRACKET_OR_COLON.finditer(text):
        if match[0] in "{[(<":
            depth += 1
        elif match[0] != " ":
            depth -= 1
        elif not depth:
            found = match.start()
    return found


def _free_names(region: Region) -> frozenset[str]:
    used: set[str] = set()
    defined: set[str] = set()
    for block in region.blocks:
        defined.update(block.arguments)
        for op in block.ops:
            defined.update(op.results)
            used.update(op.operands)
            for _, arguments in op.successors:
                used.update(arguments)
            for inner in op.regions:
                used |= inner.free
    return frozenset(used - defined)


@lru_cache(maxsize=256)
def parse(text: str) -> Function:
    """The kernel in this IR text. Raises CouldNotCheck, naming what it could not read.

    Equal texts give the same record: one kernel is replayed many times, and nobody changes it.
    """
    return _Parser(text).functions()
