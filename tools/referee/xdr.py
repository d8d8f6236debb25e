"""A compiler for the XDR language (RFC 4506), as far as the description in the draft needs it.

It reads a description at run time and gives a codec for each type. A struct is a dict, a counted array a list, an opaque
bytes, a union a dict with its discriminant and the value of its arm. A struct that ends in an optional pointer to itself
is a linked list: a pointer to it is a list of its entries, and no deeper recursion than that of the types is needed.
"""

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

TOKEN = re.compile(r"\s+|/\*.*?\*/|(\w+|[{}()<>\[\];:=*,])", re.DOTALL)
WORD = struct.Struct(">I")
LONG = struct.Struct(">Q")


class Malformed(Exception):
    """Octets that no value of the type has."""


class Overlong(Malformed):
    """An opaque item that is longer than what is left of the octets."""


class Faulty(Exception):
    """A description that this compiler does not understand."""


class Codec(Protocol):
    """Encodes and decodes the values of one type."""

    def encode(self, value: Any, out: bytearray) -> None:
        """Append the octets of a value."""

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value that begins at an offset, and the offset of what follows it."""


@dataclass(frozen=True)
class Unsigned:
    """An unsigned integer of 4 or 8 octets."""

    form: struct.Struct

    def encode(self, value: Any, out: bytearray) -> None:
        out += self.form.pack(value)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        try:
            return self.form.unpack_from(data, at)[0], at + self.form.size
        except struct.error:
            raise Malformed("ends within an integer") from None


UNSIGNED = Unsigned(WORD)


@dataclass(frozen=True)
class Opaque:
    """Opaque octets of variable length. What their padding holds is not looked at (the draft, section 11.2.2.3)."""

    maximum: int | None

    def encode(self, value: Any, out: bytearray) -> None:
        out += WORD.pack(len(value)) + value + bytes(-len(value) % 4)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        length, at = UNSIGNED.decode(data, at)
        end = at + length
        after = end + -length % 4
        if after > len(data) or _exceeds(length, self.maximum):
            raise Overlong("longer than what is left")
        return data[at:end], after


@dataclass(frozen=True)
class Array:
    """A counted array."""

    element: Codec
    maximum: int | None

    def encode(self, value: Any, out: bytearray) -> None:
        out += WORD.pack(len(value))
        for element in value:
            self.element.encode(element, out)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        count, at = UNSIGNED.decode(data, at)
        if _exceeds(count, self.maximum):
            raise Malformed("too many elements")
        elements = []
        # A count that is too large ends with the octets: each element takes some.
        for _ in range(count):
            element, at = self.element.decode(data, at)
            elements.append(element)
        return elements, at


@dataclass(frozen=True)
class Optional:
    """Optional data: None or a value."""

    target: Codec

    def encode(self, value: Any, out: bytearray) -> None:
        out += WORD.pack(value is not None)
        if value is not None:
            self.target.encode(value, out)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        there, at = _boolean(data, at)
        return self.target.decode(data, at) if there else (None, at)


@dataclass(frozen=True)
class Linked:
    """A linked list of entries, each behind a word that says whether one follows."""

    entry: Codec

    def encode(self, value: Any, out: bytearray) -> None:
        for entry in value:
            out += WORD.pack(1)
            self.entry.encode(entry, out)
        out += WORD.pack(0)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        entries = list[Any]()
        while True:
            there, at = _boolean(data, at)
            if not there:
                return entries, at
            entry, at = self.entry.decode(data, at)
            entries.append(entry)


@dataclass(frozen=True)
class Structure:
    """A struct."""

    fields: Sequence[tuple[str, Codec]]

    def encode(self, value: Any, out: bytearray) -> None:
        for name, codec in self.fields:
            codec.encode(value[name], out)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        value = {}
        for name, codec in self.fields:
            value[name], at = codec.decode(data, at)
        return value, at


@dataclass(frozen=True)
class Union:
    """A discriminated union. None stands for an arm without a value."""

    switch: str
    discriminant: Codec
    arms: Mapping[int, tuple[str, Codec] | None]
    # Whether there is a default arm; in the descriptions that are read here it is always void.
    has_default: bool

    def encode(self, value: Any, out: bytearray) -> None:
        self.discriminant.encode(value[self.switch], out)
        arm = self._arm(value[self.switch])
        if arm is not None:
            arm[1].encode(value[arm[0]], out)

    def decode(self, data: bytes, at: int) -> tuple[Any, int]:
        chosen, at = self.discriminant.decode(data, at)
        value = {self.switch: chosen}
        arm = self._arm(chosen)
        if arm is not None:
            value[arm[0]], at = arm[1].decode(data, at)
        return value, at

    def _arm(self, chosen: int) -> tuple[str, Codec] | None:
        if chosen not in self.arms and not self.has_default:
            raise Malformed("no such arm")
        return self.arms.get(chosen)


@dataclass(frozen=True)
class Declaration:
    """What a declaration says: a name, a type and how the type is repeated."""

    name: str
    base: str
    # "" for one value, "*" for optional data, "<" for a counted array.
    shape: str = ""
    maximum: int | None = None


@dataclass
class Definitions:
    """What a description defines."""

    constants: dict[str, int] = field(default_factory=dict)
    typedefs: dict[str, Declaration] = field(default_factory=dict)
    structs: dict[str, Sequence[Declaration]] = field(default_factory=dict)
    unions: dict[str, tuple[Declaration, Mapping[int, Declaration | None], bool]] = field(default_factory=dict)

    def defines(self, name: str) -> bool:
        """Whether a type of this name is known so far."""
        return name in self.typedefs or name in self.structs or name in self.unions


class Schema:
    """The types of a description. "aliases" gives a built-in type to each name that the description uses but never
    defines."""

    BUILT_IN: Mapping[str, Codec] = {"unsigned": UNSIGNED, "uint32": UNSIGNED, "uint64": Unsigned(LONG)}

    def __init__(self, text: str, aliases: Mapping[str, str]) -> None:
        self._definitions = _Parser(text).parse({*self.BUILT_IN, *aliases})
        self._codecs: dict[str, Codec] = {**self.BUILT_IN, **{name: self.BUILT_IN[of] for name, of in aliases.items()}}

    @property
    def constants(self) -> Mapping[str, int]:
        """The constants by name."""
        return self._definitions.constants

    def fields(self, name: str) -> list[str]:
        """The names of the fields of a struct; none if the type is none."""
        return [declaration.name for declaration in self._definitions.structs.get(name, ())]

    def codec(self, name: str) -> Codec:
        """The codec of a type; the same each time."""
        if name not in self._codecs:
            self._codecs[name] = self._compiled(name)
        return self._codecs[name]

    def _compiled(self, name: str) -> Codec:
        known = self._definitions
        if name in known.typedefs:
            return self._declared(known.typedefs[name])
        if name in known.structs:
            return self._structure(known.structs[name])
        if name in known.unions:
            discriminant, arms, has_default = known.unions[name]
            compiled = {case: None if arm is None else (arm.name, self._declared(arm)) for case, arm in arms.items()}
            return Union(discriminant.name, self._declared(discriminant), compiled, has_default)
        raise Faulty(f"{name} is not defined")

    def _structure(self, declarations: Sequence[Declaration]) -> Codec:
        return Structure([(each.name, self._declared(each)) for each in declarations])

    def _declared(self, declaration: Declaration) -> Codec:
        if declaration.base == "opaque":
            return Opaque(declaration.maximum)
        if declaration.shape == "*":
            *entry, last = self._definitions.structs[declaration.base]
            if (last.base, last.shape) == (declaration.base, "*"):
                return Linked(self._declared(entry[0]) if len(entry) == 1 else self._structure(entry))
            return Optional(self.codec(declaration.base))
        if declaration.shape == "<":
            return Array(self.codec(declaration.base), declaration.maximum)
        return self.codec(declaration.base)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise Faulty(f"no token: {text[at:at + 20]!r}")
            if match[1]:
                self._tokens.append(match[1])
            at = match.end()
        self._at = 0

    def parse(self, built_in: set[str]) -> Definitions:
        found = Definitions()
        while self._at < len(self._tokens):
            kind = self._next()
            if kind == "const":
                name = self._next()
                self._expect("=")
                found.constants[name] = self._value(found)
                self._expect(";")
            elif kind == "typedef":
                declaration = self._declaration(found)
                # The draft, section 5.1, defines rpcrdma2_propid the wrong way round.
                if declaration.name in built_in and not (declaration.base in built_in or found.defines(declaration.base)):
                    declaration = Declaration(declaration.base, declaration.name)
                found.typedefs[declaration.name] = declaration
                self._expect(";")
            elif kind == "struct":
                name = self._next()
                found.structs[name] = self._body(found)
            elif kind == "union":
                name = self._next()
                found.unions[name] = self._union(found)
            else:
                raise Faulty(f"no definition begins with {kind}")
        return found

    def _body(self, found: Definitions) -> list[Declaration]:
        declarations = []
        self._expect("{")
        while self._peek() != "}":
            declarations.append(self._declaration(found))
            self._expect(";")
        self._expect("}")
        self._expect(";")
        return declarations

    def _union(self, found: Definitions) -> tuple[Declaration, Mapping[int, Declaration | None], bool]:
        self._expect("switch")
        self._expect("(")
        discriminant = self._declaration(found)
        self._expect(")")
        self._expect("{")
        arms: dict[int, Declaration | None] = {}
        has_default = False
        while (word := self._next()) != "}":
            if word == "default":
                has_default = True
                self._expect(":")
                self._expect("void")
            else:
                case = self._value(found)
                self._expect(":")
                arms[case] = None if self._peek() == "void" else self._declaration(found)
                self._at += arms[case] is None
            self._expect(";")
        self._expect(";")
        return discriminant, arms, has_default

    def _declaration(self, found: Definitions) -> Declaration:
        base = self._next()
        if base == "struct":
            base = self._next()
        shape = "*" if self._peek() == "*" else ""
        self._at += len(shape)
        name = self._next()
        maximum = None
        if self._peek() == "<":
            shape = self._next()
            maximum = None if self._peek() == ">" else self._value(found)
            self._expect(">")
        return Declaration(name, base, shape, maximum)

    def _value(self, found: Definitions) -> int:
        word = self._next()
        return found.constants[word] if word in found.constants else int(word, 0)

    def _peek(self) -> str:
        if self._at == len(self._tokens):
            raise Faulty("ends within a definition")
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if (found := self._next()) != token:
            raise Faulty(f"{found} where {token} belongs")


def _boolean(data: bytes, at: int) -> tuple[int, int]:
    there, at = UNSIGNED.decode(data, at)
    if there > 1:
        raise Malformed("neither 0 nor 1")
    return there, at


def _exceeds(count: int, maximum: int | None) -> bool:
    return maximum is not None and count > maximum
