# SPDX-License-Identifier: Apache-2.0
"""Writes the pages ``reference/api-*.md`` from the OpenAPI documents.

The pages are not kept. No page is written while a document lacks the
description of an object, a field or a parameter, or the example of an object.
"""

from collections.abc import Iterator
import json
import pathlib
from typing import Any
from typing import TYPE_CHECKING

from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import routes

if TYPE_CHECKING:
    from sphinx import application

# The statuses that any request can have, shown once.
_OF_ALL = ('400', '401', '406', '500', '503')

Schema = dict[str, Any]
# The path of a field, its schema, and whether the field is required.
Field = tuple[str, Schema, bool]


def page(document: Schema) -> str:
    """Return the page of an OpenAPI document, in Markdown."""
    return '\n'.join(_page(document))


def _page(document: Schema) -> Iterator[str]:
    version = document['info']['version']
    yield f'# The API, version {version}\n'
    yield (
        'Generated from `/openapi.json`, as returned to a request with '
        f'`{microversion.HEADER}: {microversion.SERVICE_TYPE} {version}`.\n'
    )
    yield f'{document["info"]["description"]}\n'
    yield (
        'Each path is also valid with `.json` at its end, and each GET as '
        'HEAD. Bodies are JSON. The token is in the header `X-Auth-Token`.\n'
    )
    nouns = document['components']['schemas']
    yield from _errors(nouns['Error'])
    for place, described in _operations(document):
        yield f'## {place}\n'
        yield from _operation(described)
    for name, noun in nouns.items():
        yield f'## {name}\n'
        yield f'{noun["description"]}.\n'
        yield from _table(noun)
        [example] = noun['examples']
        yield f'```json\n{json.dumps(example, indent=2)}\n```\n'


def undescribed(document: Schema) -> list[str]:
    """Return the parts of an OpenAPI document without a description.

    The parts are objects, which need an example too, fields of objects and
    bodies, and parameters.
    """
    nouns = document['components']['schemas']
    return [
        *(
            name
            for name, noun in nouns.items()
            if not {'description', 'examples'} <= noun.keys()
        ),
        *(
            f'{place}: {name}'
            for place, schema in (*nouns.items(), *_bodies(document))
            for name, of_field, _ in _fields(schema, '')
            if not _is_said(of_field)
        ),
        *(
            f'{place}: {parameter["name"]}'
            for place, described in _operations(document)
            for parameter in _own_parameters(described)
            if not parameter['description']
        ),
    ]


def _operations(document: Schema) -> Iterator[tuple[str, Schema]]:
    for path, methods in document['paths'].items():
        for method, described in methods.items():
            yield f'{method.upper()} {path}', described


def _bodies(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas of requests and responses, each with its request."""
    for place, described in _operations(document):
        request = described.get('requestBody', {})
        for body in (request, *described['responses'].values()):
            if 'content' in body:
                yield place, _content(body)


def _is_said(schema: Schema) -> bool:
    """Tell whether a field has a description, or is an object with one."""
    nouns = '$ref' in schema or '$ref' in schema.get('items', ())
    return nouns or 'description' in schema


def _own_parameters(described: Schema) -> list[Schema]:
    """Return the parameters of a request, without the version header."""
    return [p for p in described['parameters'] if 'in' in p]


def _errors(error: Schema) -> Iterator[str]:
    yield '## Errors\n'
    yield f'The body of each error response is {_link("Error")}.\n'
    yield f'Errors of any request: {", ".join(_OF_ALL)}.\n'
    yield '| error_name | error_code | meaning |\n|---|---|---|'
    for name in error['properties']['error_name']['x-names']:
        what = _line(name['description'])
        yield f'| `{name["name"]}` | {name["status"]} | {what} |'
    yield ''


def _operation(described: Schema) -> Iterator[str]:
    yield f'{described["summary"]}\n'
    if described['description']:
        yield f'{described["description"]}\n'
    if 'x-policy' in described:
        yield f'Policy: `{described["x-policy"]}`\n'
    else:
        yield 'No token is needed.\n'
    yield from _parameters(_own_parameters(described))
    if 'requestBody' in described:
        yield 'Request:\n'
        yield from _table(_content(described['requestBody']))
    yield from _answers(described['responses'])


def _parameters(parameters: list[Schema]) -> Iterator[str]:
    if not parameters:
        return
    yield '| parameter | in | what |\n|---|---|---|'
    for parameter in parameters:
        # The description of a parameter is beside its schema.
        what = _what(parameter | parameter['schema'])
        yield f'| `{parameter["name"]}` | {parameter["in"]} | {what} |'
    yield ''


def _answers(responses: dict[str, Schema]) -> Iterator[str]:
    refusals = {s for s, answer in responses.items() if '$ref' in answer}
    for status in sorted(responses.keys() - refusals):
        if 'content' in responses[status]:
            yield f'Response, {status}:\n'
            yield from _table(_content(responses[status]))
        else:
            yield f'Response, {status}: no body.\n'
    refused = sorted(refusals.difference(_OF_ALL))
    if refused:
        yield f'Further errors: {", ".join(refused)}.\n'


def _content(described: Schema) -> Schema:
    return described['content'][openapi.JSON]['schema']


def _table(schema: Schema) -> Iterator[str]:
    fields = list(_fields(schema, ''))
    if not fields:
        return
    yield '| field | required | what |\n|---|---|---|'
    for path, of_field, required in fields:
        needed = 'yes' if required else ''
        yield f'| `{path}` | {needed} | {_what(of_field)} |'
    yield ''


def _fields(schema: Schema, path: str) -> Iterator[Field]:
    """Yield the fields of an object, each with the fields inside it."""
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
    """Yield the variants of an object: by resource type, or known and new."""
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
            yield part['then'], f'({types.get("const", "other types")})'


def _what(schema: Schema) -> str:
    said = [_type(schema), schema.get('description', '')]
    limits = {
        'minimum {}': schema.get('minimum'),
        'maximum {}': schema.get('maximum'),
        'minimum length {}': schema.get('minLength'),
        'maximum length {}': schema.get('maxLength'),
        'at most {} items': schema.get('maxItems'),
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
    """Return a text for one cell of a table."""
    return ' '.join(text.split()).replace('|', '\\|')


def _write(app: 'application.Sphinx') -> None:
    for version in microversion.KNOWN:
        document = openapi.document(routes.ROUTES, version)
        if lacking := undescribed(document):
            raise ValueError(f'no description of {", ".join(lacking)}')
        file = pathlib.Path(app.srcdir, 'reference', f'api-{version}.md')
        file.write_text(page(document))


def setup(app: 'application.Sphinx') -> dict[str, bool]:
    app.connect('builder-inited', _write)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
