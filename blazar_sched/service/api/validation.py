# SPDX-License-Identifier: Apache-2.0
"""Holds request bodies to their JSON Schema."""

from typing import Any

import jsonschema
from jsonschema import validators

from blazar_sched.domain import exception

_MAX_MESSAGE = 200


def _is_integer(checker: Any, value: Any) -> bool:
    # JSON Schema calls 1.0 an integer; nothing below the API does.
    return isinstance(value, int) and not isinstance(value, bool)


_Strict = validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', _is_integer
    ),
)


def validator(schema: dict[str, Any]) -> jsonschema.protocols.Validator:
    """Build what `check` wants, once a schema."""
    _Strict.check_schema(schema)
    return _Strict(schema)


def check(
    schema: jsonschema.protocols.Validator, document: Any
) -> None:
    """Pass if `document` is what `schema` describes.

    :raises InvalidInput: naming the field by its path, as in
        ``reservations[0].min``
    """
    error = next(schema.iter_errors(document), None)
    if error is None:
        return
    message = error.message
    if error.validator == 'not':
        # What may not be there says itself why.
        message = error.schema['description']
    if len(message) > _MAX_MESSAGE:
        # The value stands first, what is wrong with it last.
        message = f'{message[:_MAX_MESSAGE // 2]}…{message[-_MAX_MESSAGE:]}'
    path = _path(error.absolute_path)
    raise exception.InvalidInput(message, field=path or None)


def _path(steps: Any) -> str:
    path = ''.join(
        f'[{step}]' if isinstance(step, int) else f'.{step}' for step in steps
    )
    return path.removeprefix('.')
