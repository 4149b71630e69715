# SPDX-License-Identifier: Apache-2.0
"""Requirements: which hosts a reservation may use.

The language is JSON: ``[op, "$name", value]`` with op one of ``== = != >=
<= > <``, ``["in", "$name", value, ...]``, and ``["and", r, ...]``, ``["or",
r, ...]``, ``["not", r]`` over these. A name may be scoped: ``$capabilities:x``
is ``$x``; any other scope is part of the name.

Two numbers are compared as numbers, exactly. Otherwise ``==``, ``!=`` and
``in`` compare text; two texts are ordered as text, and a number and a text
have no order. Every comparison with a property that the host lacks is false,
``!=`` too: a host that lacks the property is found by ``not``.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import decimal
import functools
import json
import operator as operators
import re
from typing import Any
from typing import NoReturn

from blazar_sched.domain import exception

# Limits of one requirement, and of the different requirements of a lease
# together: text in characters, nested lists, and lists and values together.
MAX_LENGTH = 16384
MAX_DEPTH = 32
# The limit of all requirements of a lease, where equal requirements count each
# time, in characters.
MAX_TOGETHER = 4 * MAX_LENGTH
MAX_NODES = 1000

# Numbers have no exponent: '1e5' in a serial number is text.
_NUMBER = re.compile(r'-?[0-9]{1,40}(?:\.[0-9]{1,40})?')
# The scope in a flavor's extra specs; a property's name is without the scope.
SCOPE = 'capabilities:'
_COMPARISONS = {
    '==': operators.eq,
    '=': operators.eq,
    '!=': operators.ne,
    '>=': operators.ge,
    '<=': operators.le,
    '>': operators.gt,
    '<': operators.lt,
}
_UNORDERED = (operators.eq, operators.ne)


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of one property with a value, or with several for 'in'."""

    operator: str
    name: str
    values: tuple[str, ...]
    # The values of which the property must have one, for 'in'.
    _wanted: frozenset[Any] = dataclasses.field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        wanted = frozenset(map(_comparable, self.values))
        object.__setattr__(self, '_wanted', wanted)

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Tell whether a host with these properties meets the comparison."""
        held = properties.get(self.name)
        if held is None:
            return False
        if self.operator == 'in':
            return _comparable(held) in self._wanted
        return _compare(self.operator, held, self.values[0])

    def names(self) -> set[str]:
        """Return the names of the properties that the comparison reads."""
        return {self.name}

    def ordered(self) -> set[str]:
        """Return the names of the properties that are compared by order."""
        if self.operator == 'in' or (
            _COMPARISONS[self.operator] in _UNORDERED
        ):
            return set()
        return {self.name}


@dataclasses.dataclass(frozen=True, slots=True)
class Combination:
    """'and', 'or' or 'not' over requirements; 'and' over none is true."""

    operator: str
    parts: 'tuple[Requirement, ...]'

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Tell whether a host with these properties meets the combination."""
        if self.operator == 'not':
            return not self.parts[0].matches(properties)
        results = (part.matches(properties) for part in self.parts)
        return all(results) if self.operator == 'and' else any(results)

    def names(self) -> set[str]:
        """Return the names of the properties that the combination reads."""
        return {name for part in self.parts for name in part.names()}

    def ordered(self) -> set[str]:
        """Return the names of the properties that are compared by order."""
        return {name for part in self.parts for name in part.ordered()}


Requirement = Comparison | Combination


def all_of(*requirements: Requirement) -> Requirement:
    """Return the requirement that a host meets if it meets all of these."""
    return Combination('and', requirements)


# The requirement that any host meets.
ANY = all_of()


def parse(text: str | list[object] | None, field: str) -> Requirement:
    """Read a requirement: JSON text, or a list already read from JSON text.

    '', None and [] require nothing.

    :param field: the request's field that holds the requirement
    :raises InvalidInput: naming `field`, if the requirement is malformed or
        too large
    """
    if text is None or text == '':
        return all_of()
    return _parse(text, field) if isinstance(text, str) else _read(text, field)


# Leases that recur have the same few requirements a thousand times.
@functools.lru_cache(maxsize=128)
def _parse(text: str, field: str) -> Requirement:
    return _read(_load(text, field), field)


def _read(tree: object, field: str) -> Requirement:
    if tree == []:
        return all_of()
    _check_size(tree, field)
    return _build(tree, field)


def check_together(texts: Iterable[str], field: str) -> None:
    """Refuse the requirements of one lease if they are too large together.

    The parts of equal requirements count once, as they are matched once. Their
    text counts each time, as it is stored each time.

    :raises InvalidInput: naming `field`
    """
    all_ = [text for text in texts if text]
    if sum(map(len, all_)) > MAX_TOGETHER:
        _refuse(
            field, f'have requirements of more than {MAX_TOGETHER} characters'
        )
    length = parts = 0
    for text in set(all_):
        length += len(text)
        parts += _count_parts(text, field)
    if length > MAX_LENGTH:
        _refuse(
            field,
            f'have requirements of more than {MAX_LENGTH} characters together',
        )
    if parts > MAX_NODES:
        _refuse(
            field, f'have requirements of more than {MAX_NODES} parts together'
        )


@functools.lru_cache(maxsize=128)
def _count_parts(text: str, field: str) -> int:
    return sum(1 for _ in _nodes(_load(text, field)))


def _comparable(text: str) -> decimal.Decimal | str:
    """Return a value that is equal for two texts that compare as equal."""
    number = _number(text)
    return text if number is None else number


def _compare(operator: str, held: str, value: str) -> bool:
    compare = _COMPARISONS[operator]
    a, b = _number(held), _number(value)
    if a is not None and b is not None:
        return bool(compare(a, b))
    if (a is None) != (b is None) and compare not in _UNORDERED:
        return False
    return bool(compare(held, value))


# The same few values are parsed for each host of a cloud.
@functools.lru_cache(maxsize=1024)
def _number(text: str) -> decimal.Decimal | None:
    return decimal.Decimal(text) if _NUMBER.fullmatch(text) else None


def _load(text: str, field: str) -> object:
    if len(text) > MAX_LENGTH:
        _refuse(field, f'is longer than {MAX_LENGTH} characters')
    try:
        return json.loads(
            text, parse_int=_literal, parse_float=_literal,
            parse_constant=_literal,
        )
    except RecursionError:
        _refuse(field, f'is nested deeper than {MAX_DEPTH}')
    except ValueError as e:
        _refuse(field, f'is not JSON: {e}')


def _literal(text: str) -> str:
    """Return a number as it is written, so that nothing is rounded."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(
            f'the number {text[:40]} must have only digits, at most 40 on '
            'each side of the decimal point'
        )
    return text


def _nodes(tree: object) -> Iterator[tuple[object, int]]:
    """Yield each list and value with its depth, without recursion."""
    waiting: list[tuple[object, int]] = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        if isinstance(node, list):
            waiting.extend((part, depth + 1) for part in node)


def _check_size(tree: object, field: str) -> None:
    length = 0
    for count, (node, depth) in enumerate(_nodes(tree), start=1):
        if isinstance(node, list) and depth > MAX_DEPTH:
            _refuse(field, f'is nested deeper than {MAX_DEPTH}')
        if count > MAX_NODES:
            _refuse(field, f'has more than {MAX_NODES} parts')
        if isinstance(node, str):
            length += len(node)
        if length > MAX_LENGTH:
            _refuse(field, f'is longer than {MAX_LENGTH} characters')


def _build(tree: object, field: str) -> Requirement:
    if not isinstance(tree, list) or not tree:
        _refuse(field, f'needs a list at {_show(tree)}')
    operator, *rest = tree
    if operator in ('and', 'or') and rest:
        return Combination(
            operator, tuple(_build(part, field) for part in rest)
        )
    if operator == 'not' and len(rest) == 1:
        return Combination(operator, (_build(rest[0], field),))
    if operator == 'in' and len(rest) > 1:
        return _comparison(operator, rest, field)
    if _is_comparison(operator) and len(rest) == 2:
        return _comparison(operator, rest, field)
    if operator in ('and', 'or', 'not', 'in') or _is_comparison(operator):
        _refuse(field, f'has the wrong number of parts in {_show(tree)}')
    _refuse(field, f'has an unknown operator {_show(operator)}')


def _is_comparison(operator: object) -> bool:
    return isinstance(operator, str) and operator in _COMPARISONS


def _comparison(operator: str, rest: list[object], field: str) -> Comparison:
    name, *values = rest
    if not isinstance(name, str) or not name.startswith('$'):
        _refuse(field, f'needs a "$name" where it has {_show(name)}')
    key = name[1:].removeprefix(SCOPE)
    if not key:
        _refuse(field, f'has an empty name {_show(name)}')
    return Comparison(operator, key, tuple(_value(v, field) for v in values))


def _value(value: object, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        word = json.dumps(value)
        _refuse(
            field,
            f'needs text or a number where it has {word}: write "{word}", in '
            'quotes',
        )
    if not isinstance(value, int | float | decimal.Decimal):
        _refuse(field, f'needs text or a number where it has {_show(value)}')
    try:
        return _literal(str(value))
    except ValueError as e:
        _refuse(field, str(e))


def _show(part: object) -> str:
    """Return a short text of a part, whatever the size of the part."""
    if isinstance(part, list):
        return f'a list of {len(part)}'
    if isinstance(part, str):
        return repr(part[:40])
    return f'a value of type {type(part).__name__}'


def _refuse(field: str, what: str) -> NoReturn:
    raise exception.InvalidInput(f'{field} {what}', field=field)
