# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of this folder: what OpenAPI says, for people.

Run it after a change of the API: ``python api-ref/generate.py``. It writes
none while a field has no meaning: its schema's description, else what
parameters.yaml has for it.
"""

from collections.abc import Iterator
import http
import json
import pathlib
import re
from typing import Any

import yaml

from blazar_sched.domain import exception
from blazar_sched.service.api import errors
from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import routes

FOLDER = pathlib.Path(__file__).parent
PARAMETERS = yaml.safe_load((FOLDER / 'parameters.yaml').read_text())
# Said of every request, above them all.
_OF_ALL = ('400', '401', '406', '500', '503')

Schema = dict[str, Any]
# A field's path, its schema, and whether it has to be there.
Field = tuple[str, Schema, bool]


def pages() -> dict[pathlib.Path, str]:
    """Return what is to be in each file."""
    return {
        FOLDER / f'{microversion.SERVICE_TYPE}-{version}.md': '\n'.join(
            _page(openapi.document(routes.ROUTES, version))
        )
        for version in microversion.KNOWN
    }


def _page(document: Schema) -> Iterator[str]:
    version = document['info']['version']
    yield f'# The API, version {version}\n'
    yield (
        f'Made by `generate.py` from `/openapi.json`, which is asked for this '
        f'version by `{microversion.HEADER}: {microversion.SERVICE_TYPE} '
        f'{version}`.\n'
    )
    yield f'{document["info"]["description"]}\n'
    yield (
        'Every path also answers with `.json` at its end, and every GET to '
        'HEAD. Bodies are JSON. A token goes into `X-Auth-Token`.\n'
    )
    yield from _errors()
    for path, methods in document['paths'].items():
        for method, described in methods.items():
            yield f'## {method.upper()} {path}\n'
            yield from _operation(described)
    for name, schema in document['components']['schemas'].items():
        yield f'## {name}\n'
        yield from _table(schema, name)


def undescribed(document: Schema) -> list[str]:
    """Return the fields and parameters of an OpenAPI document without meaning.
    """
    found = [
        f'{name}: {path}'
        for name, schema in document['components']['schemas'].items()
        for path, of_field, _ in _fields(schema, '')
        if not _is_said(of_field, path, name)
    ]
    for path, methods in document['paths'].items():
        for method, described in methods.items():
            owner = _noun(described)
            place = f'{method.upper()} {path}'
            schemas = [
                _content(body)
                for body in (
                    described.get('requestBody', {}),
                    *described['responses'].values(),
                )
                if 'content' in body
            ]
            found += [
                f'{place}: {name}'
                for schema in schemas
                for name, of_field, _ in _fields(schema, '')
                if not _is_said(of_field, name, owner)
            ]
            found += [
                f'{place}: {p["name"]}'
                for p in described['parameters']
                if 'in' in p and not _is_said(p['schema'], p['name'], p['in'])
            ]
    return found


def _is_said(schema: Schema, path: str, owner: str) -> bool:
    """Tell whether it is said what a field is; a noun says it itself."""
    nouns = '$ref' in schema or '$ref' in schema.get('items', ())
    return nouns or bool(_meaning(schema, path, owner))


def _meaning(schema: Schema, path: str, owner: str) -> str:
    """Return what a field means, '' if nobody says it.

    :param path: of the field, as `_fields` has it
    :param owner: what the outermost fields are in
    """
    if 'description' in schema:
        return str(schema['description'])
    # Neither that it is in a list, nor for which type.
    names = re.sub(r'\[\]|\([^)]*\)', '', path).split('.')
    inside = [owner, *names][-2]
    said = PARAMETERS.get(f'{inside}.{names[-1]}')
    return str(said or PARAMETERS.get(names[-1], ''))


def _noun(described: Schema) -> str:
    """Return the noun that an operation is about, '' if there is none."""
    for answer in described['responses'].values():
        if 'content' in answer:
            for of_field in _content(answer).get('properties', {}).values():
                noun = of_field.get('$ref') or of_field['items'].get('$ref')
                return str(noun).rpartition('/')[2]
    return ''


def _errors() -> Iterator[str]:
    yield '## Errors\n'
    yield f'Whoever refuses, the body is {_link("Error")}.\n'
    yield f'Any request may be answered with {", ".join(_OF_ALL)}.\n'
    yield '| error_name | error_code | meaning |\n|---|---|---|'
    named = {
        c.__name__: (c.status, c.__doc__)
        for c in vars(exception).values()
        if isinstance(c, type) and c is not exception.BlazarSchedError
    }
    of_the_api = {
        name: (status, None) for status, name in errors.NAMES.items()
    }
    for name, (status, meaning) in sorted((of_the_api | named).items()):
        what = _line(meaning or http.HTTPStatus(status).phrase)
        yield f'| `{name}` | {status} | {what} |'
    yield ''


def _operation(described: Schema) -> Iterator[str]:
    yield f'{described["summary"]}\n'
    if described['description']:
        yield f'{described["description"]}\n'
    if 'x-policy' in described:
        yield f'Policy: `{described["x-policy"]}`\n'
    else:
        yield 'No token is needed.\n'
    yield from _parameters([p for p in described['parameters'] if 'in' in p])
    owner = _noun(described)
    if 'requestBody' in described:
        yield 'Request:\n'
        yield from _table(_content(described['requestBody']), owner)
    yield from _answers(described['responses'], owner)


def _parameters(parameters: list[Schema]) -> Iterator[str]:
    if not parameters:
        return
    yield '| parameter | in | what |\n|---|---|---|'
    for parameter in parameters:
        name, place = parameter['name'], parameter['in']
        what = _what(parameter['schema'], name, place)
        yield f'| `{name}` | {place} | {what} |'
    yield ''


def _answers(responses: dict[str, Schema], owner: str) -> Iterator[str]:
    refusals = {s for s, answer in responses.items() if '$ref' in answer}
    for status in responses.keys() - refusals:
        if 'content' in responses[status]:
            yield f'Answer, {status}:\n'
            yield from _table(_content(responses[status]), owner)
        else:
            yield f'Answer, {status}: no body.\n'
    refused = sorted(refusals.difference(_OF_ALL))
    if refused:
        yield f'Refused with {", ".join(refused)}.\n'


def _content(described: Schema) -> Schema:
    return described['content'][openapi.JSON]['schema']


def _table(schema: Schema, owner: str) -> Iterator[str]:
    fields = list(_fields(schema, ''))
    if not fields:
        return
    yield '| field | required | what |\n|---|---|---|'
    for path, of_field, required in fields:
        what = _what(of_field, path, owner)
        yield f'| `{path}` | {"yes" if required else ""} | {what} |'
    yield ''


def _fields(schema: Schema, path: str) -> Iterator[Field]:
    """Yield the fields of an object, and of what is in them."""
    if 'items' in schema:
        yield from _fields(schema['items'], f'{path}[]')
        return
    for name, of_field in schema.get('properties', {}).items():
        if of_field.get('not') == {} or not of_field:
            continue
        inside = f'{path}.{name}'.lstrip('.')
        yield inside, of_field, name in schema.get('required', ())
        yield from _fields(of_field, inside)
    if isinstance(schema.get('additionalProperties'), dict):
        yield f'{path}.*'.lstrip('.'), schema['additionalProperties'], False
    for variant, only in _variants(schema):
        yield from _fields(variant, f'{path}{only}')


def _variants(schema: Schema) -> Iterator[tuple[Schema, str]]:
    """Yield what an object has more, by its resource type.

    Or what it has at all, by whether it is known.
    """
    if 'else' in schema:
        yield schema['then'], '(known)'
        yield schema['else'], '(new)'
    elif 'then' in schema:
        yield schema['then'], ''
    for variant in schema.get('oneOf', ()):
        types = variant['properties']['resource_type']
        yield variant, f'({types.get("const", "other types")})'
    for part in schema.get('allOf', ()):
        if 'if' in part:
            types = part['if']['properties']['resource_type']
            yield part['then'], f'({types["const"]})'


def _what(schema: Schema, path: str, owner: str) -> str:
    said = [_type(schema), _meaning(schema, path, owner)]
    limits = {
        'from {}': schema.get('minimum'),
        'to {}': schema.get('maximum'),
        'at least {} characters': schema.get('minLength'),
        'at most {} characters': schema.get('maxLength'),
        'at most {} of them': schema.get('maxItems'),
    }
    said += [
        text.format(limit)
        for text, limit in limits.items()
        if limit is not None
    ]
    if 'default' in schema:
        said.append(f'default `{json.dumps(schema["default"])}`')
    return _line('; '.join(text for text in said if text))


def _type(schema: Schema) -> str:
    if 'const' in schema:
        return f'`{json.dumps(schema["const"])}`'
    if 'enum' in schema:
        return ', '.join(f'`{json.dumps(value)}`' for value in schema['enum'])
    if '$ref' in schema:
        return _link(schema['$ref'].rpartition('/')[2])
    if '$ref' in schema.get('items', ()):
        return f'list of {_type(schema["items"])}'
    types = schema.get('type', '')
    return types if isinstance(types, str) else ' or '.join(types)


def _link(noun: str) -> str:
    return f'[{noun}](#{noun.lower()})'


def _line(text: str) -> str:
    """Return a text that stays in its cell."""
    return ' '.join(text.split()).replace('|', '\\|')


if __name__ == '__main__':
    for version in microversion.KNOWN:
        if lacking := undescribed(openapi.document(routes.ROUTES, version)):
            raise SystemExit(f'parameters.yaml lacks {", ".join(lacking)}')
    for file, page in pages().items():
        file.write_text(page)
