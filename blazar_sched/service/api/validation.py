# SPDX-License-Identifier: Apache-2.0
"""Validation of request bodies by JSON Schema.

A schema may have its own text of a refusal, under ``x-refusal``, where the
message of the library is no help.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import difflib
import re
from typing import Any

import jsonschema
from jsonschema import validators
from microversion_parse import Version

from blazar_sched.domain import exception
from blazar_sched.service.api import microversion

# The number of characters kept of a long message, at either end.
_HEAD, _TAIL = 100, 200

Schema = dict[str, Any]
Validator = jsonschema.protocols.Validator
ByVersion = Mapping[Version, Validator]


def _is_integer(checker: object, value: object) -> bool:
    # JSON Schema accepts 1.0 as an integer; the code below the API does not.
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(
    checker: object, pattern: str, value: object, schema: Schema
) -> Iterator[jsonschema.ValidationError]:
    # Python's `$` also matches before a line end at the end.
    exact = pattern.removesuffix('$') + r'\Z' * pattern.endswith('$')
    if isinstance(value, str) and not re.search(exact, value):
        yield jsonschema.ValidationError(f'{value!r} does not match {pattern}')


# validators.extend has no type annotations.
_extend: Any = validators.extend
_Strict = _extend(
    jsonschema.Draft202012Validator, validators={'pattern': _pattern},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', _is_integer
    ),
)


def by_version(schema: Callable[[Version], Schema]) -> ByVersion:
    """Build the validator for `check`, for each version of the API.

    `tests/unit/api/test_schemas.py` checks the schemas themselves. Checking
    them here would take a third of the time in which a process starts.
    """
    return {
        version: validator(schema(version)) for version in microversion.KNOWN
    }


def validator(schema: Schema) -> Validator:
    """Build the validator of a schema for `check`."""
    strict: Validator = _Strict(schema)
    return strict


def check_body(schemas: ByVersion, version: Version, document: Any) -> None:
    """Check that the body of a request matches the schema of its version.

    :raises InvalidInput: as `check`; also naming the version that a field
        needs
    """
    if schemas[version].is_valid(document):
        return
    unknown = _unknown(schemas[version], document)
    for newer in microversion.KNOWN if unknown else ():
        if newer > version:
            for path in unknown - _unknown(schemas[newer], document):
                field = _path(path)
                raise exception.InvalidInput(
                    microversion.needed(field, newer), field=field
                )
    check(schemas[version], document)


def _unknown(schema: Validator, document: Any) -> set[tuple[str | int, ...]]:
    """Return the paths of the fields that are not in the schema."""
    errors: Iterable[Any] = schema.iter_errors(document)
    return {
        (*error.absolute_path, name)
        for error in errors
        if error.validator == 'additionalProperties'
        for name in error.instance
        if name not in error.schema['properties']
    }


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a refusal of an unknown name."""
    known = sorted(known)
    for similar in difflib.get_close_matches(name[:_HEAD], known, 1):
        return f'; did you mean {similar}?'
    return f'; known are {", ".join(known)}' if known else ''


def check(schema: Validator, document: Any) -> None:
    """Check that `document` matches `schema`.

    :raises InvalidInput: naming the field by its path, as in
        ``reservations[0].min``
    """
    error = next(schema.iter_errors(document), None)
    if error is None:
        return
    steps = list(error.absolute_path)
    rule: Any = error.schema
    instance: Any = error.instance
    message = rule.get('x-refusal', error.message)
    if error.validator == 'required':
        missing = next(n for n in rule['required'] if n not in instance)
        message = f'Missing parameter {missing}'
        steps.append(missing)
    elif error.validator == 'additionalProperties':
        known = rule['properties']
        unknown = next(name for name in instance if name not in known)
        steps.append(unknown[:_HEAD])
        message = f'{_path(steps)} is unknown{did_you_mean(unknown, known)}'
    elif 'propertyNames' in error.schema_path:
        steps.append(instance[:_HEAD])
    elif error.validator == 'maxLength':
        message = f'may have {rule["maxLength"]} characters at most'
    raise exception.InvalidInput(_short(message), field=_path(steps) or None)


def _short(message: str) -> str:
    if len(message) <= _HEAD + _TAIL:
        return message
    # The message begins with the value and ends with the error.
    return f'{message[:_HEAD]}…{message[-_TAIL:]}'


def _path(steps: Iterable[object]) -> str:
    path = ''.join(
        f'[{step}]' if isinstance(step, int) else f'.{step}' for step in steps
    )
    return path.removeprefix('.')
