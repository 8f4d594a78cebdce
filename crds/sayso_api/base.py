"""What every part of a manifest shares: strictness, readable faults, and rules that hold between fields.

A rule is written once, beside the fields it binds, as a Python check and the CEL expression that says the same to
an API server; `sayso_api.crds` copies the expressions into the generated definitions. Checks look at the raw
fields, so that a person hears of every fault at once, also where another field of the same part has the wrong type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from sayso_api.faults import Path, did_you_mean, listing, quote
from sayso_api.pydantic_words import explain

FAULT = "sayso_fault"
FROM_MANIFEST = "manifest"
"""The validation context under which an explicit null is refused; in Python, None stands for *left out*."""

# fmt: off
_CEL_WORDS = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
    "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class Violation:
    """A fault inside a part; `at` is relative to it."""

    at: Path
    found: str
    expected: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """`check` names what breaks the rule; `cel` is the same for an API server, with `message` for its refusal.

    `cel` is empty where the API server cannot judge the rule; then only clients and the operator do.
    """

    check: Callable[[Mapping[str, Any]], Iterable[Violation]]
    cel: str = ""
    message: str = ""


def refusal(found: str, expected: str, fix: str = "") -> PydanticCustomError:
    """A fault of one value, to be raised by a validator."""
    template = "found {found}, expected {expected}" + ("; {fix}" if fix else "")
    return PydanticCustomError(FAULT, template, {"found": found, "expected": expected, "fix": fix})


def peek(value: object, *path: str | int) -> Any:
    """What stands at `path` (names as in YAML) of raw data or of models; None when there is no such thing."""
    for step in path:
        if isinstance(value, BaseModel) and isinstance(step, str):
            value = getattr(value, to_snake(step), None)
        elif isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step, value.get(to_snake(step)))
        elif isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def items(value: object, *path: str | int) -> Iterator[tuple[int, Any]]:
    """The numbered items of the list at `path`; nothing when there is no list."""
    found = peek(value, *path)
    if isinstance(found, list | tuple):
        yield from enumerate(found)


def cel_field(name: str) -> str:
    """A field's name as CEL in Kubernetes spells it: words of the language stand between underscores."""
    return f"__{name}__" if name in _CEL_WORDS else name


class Part(BaseModel):
    """A mapping in a manifest: unknown fields, nulls and broken rules are faults; values do not change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )
    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _judge(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Every fault of this part in one ValidationError, each in the words of `refusal`."""
        broken: list[Violation] = []
        if isinstance(data, Mapping):
            if info.context == FROM_MANIFEST:
                broken.extend(cls._nulls(data))
            broken.extend(violation for rule in cls.rules for violation in rule.check(data))
        lines = [_line(v.at, refusal(v.found, v.expected, v.fix), data) for v in broken]
        try:
            model = handler(data)
        except ValidationError as error:
            details = error.errors(include_url=False)
            # A misspelt field is one mistake, not also a missing one.
            judged = {violation.at for violation in broken} | {(name,) for name in cls._meant(details)}
            lines.extend(
                _line(detail["loc"], cls._in_words(detail), detail["input"])
                for detail in details
                if detail["loc"] not in judged
            )
        else:
            if not lines:
                return model
        raise ValidationError.from_exception_data(cls.__name__, lines)

    @classmethod
    def _nulls(cls, data: Mapping[str, Any]) -> Iterator[Violation]:
        if cls.model_config.get("extra") == "forbid":
            for name, value in data.items():
                if value is None:
                    yield Violation((str(name),), "null", "a value", "leave the field out, or give it a value")

    @classmethod
    def _meant(cls, details: Sequence[Any]) -> Iterator[str]:
        """The fields that unknown ones were most likely meant to be."""
        missing = {str(detail["loc"][0]) for detail in details if detail["type"] == "missing"}
        for detail in details:
            if detail["type"] == "extra_forbidden":
                near = did_you_mean(str(detail["loc"][-1]), cls.field_names())
                yield from (name for name in missing if near == f"did you mean {name}?")

    @classmethod
    def _in_words(cls, detail: Any) -> PydanticCustomError:
        """One error of pydantic in our words; those of inner parts already are."""
        if detail["type"] == FAULT:
            return refusal(detail["ctx"]["found"], detail["ctx"]["expected"], detail["ctx"]["fix"])
        if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
            known = cls.field_names()
            word = str(detail["loc"][0])
            return refusal(f"unknown field {quote(word)}", listing(known), did_you_mean(word, known))
        return refusal(*explain(detail["type"], detail.get("ctx", {}), detail["input"]))

    @classmethod
    def field_names(cls) -> list[str]:
        """The fields' names as manifests spell them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        laws = [{"rule": rule.cel, "message": rule.message} for rule in cls.rules if rule.cel]
        if laws:
            handler.resolve_ref_schema(schema)["x-kubernetes-validations"] = laws
        return schema


def _line(at: Path, kind: PydanticCustomError, value: object) -> InitErrorDetails:
    return InitErrorDetails(type=kind, loc=at, input=value)


def exactly_one(*names: str) -> Rule:
    """Of these fields one is given, and only one."""
    expected = f"exactly one of {listing(names, last='and')}"

    def check(data: Mapping[str, Any]) -> Iterator[Violation]:
        given = [name for name in names if peek(data, name) is not None]
        if len(given) != 1:
            found = listing(given, last="and") or "none of them"
            yield Violation((), found, expected, "keep one of them" if given else f"give {listing(names)}")

    has = ", ".join(f"has(self.{cel_field(name)})" for name in names)
    return Rule(check, f"[{has}].exists_one(given, given)", f"expected {expected}")


def only_with(name: str, needed: str, *, unless: object = None) -> Rule:
    """`name` may be given only beside `needed`. `unless` is a default, which an API server fills in by itself."""
    expected = f"{name} only together with {needed}"

    def check(data: Mapping[str, Any]) -> Iterator[Violation]:
        value = peek(data, name)
        if value is not None and value != unless and peek(data, needed) is None:
            yield Violation((name,), quote(value), expected, f"leave {name} out")

    field, other = cel_field(name), cel_field(needed)
    default = f" || self.{field} == '{unless}'" if unless is not None else ""
    return Rule(check, f"!has(self.{field}){default} || has(self.{other})", f"expected {expected}")


def unique(name: str, key: str = "", *, fold: bool = False) -> Rule:
    """Items of the list `name` differ, or their field `key` does; `fold` ignores case.

    Has no CEL: the list's type (`map` or `set`) says it to an API server.
    """

    def check(data: Mapping[str, Any]) -> Iterator[Violation]:
        seen: dict[str, int] = {}
        for index, item in items(data, name):
            value = peek(item, key) if key else item
            if not isinstance(value, str):
                continue
            first = seen.setdefault(value.lower() if fold else value, index)
            if first != index:
                at: Path = (name, index, key) if key else (name, index)
                found = f"{quote(value)}, which {name}[{first}] has already"
                yield Violation(at, found, "each only once", "remove one of the two")

    return Rule(check)


@dataclass(frozen=True, slots=True)
class Text:
    """Text of at most `longest` characters which, as a whole, has the form `pattern` (none: any)."""

    longest: int
    expected: str = "text"
    pattern: str = ""
    shortest: int = 0

    def check(self, value: str) -> str:
        """`value` itself, or a refusal."""
        if not self.shortest <= len(value) <= self.longest:
            size = f"{self.shortest} to {self.longest}" if self.shortest else f"at most {self.longest}"
            raise refusal(f"{quote(value)} ({len(value)} characters)", f"{self.expected}, {size} characters")
        if self.pattern and re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise refusal(quote(value), self.expected)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        schema["maxLength"] = self.longest
        if self.shortest:
            schema["minLength"] = self.shortest
        if self.pattern:
            schema["pattern"] = f"^(?:{self.pattern})$"
        return schema
