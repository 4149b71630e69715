# SPDX-License-Identifier: Apache-2.0
"""Media types, and a strict JSON reader for request bodies.

The standard reader accepts NaN, numbers beyond any float, the last of several
equal keys, and texts that no database stores. This reader refuses all of
them, so that a body means the same to every reader.
"""

import json
import math
import re
from typing import Any

import falcon

# PostgreSQL cannot store NUL; no database can store half a surrogate pair.
UNSTORABLE = re.compile('[\0\ud800-\udfff]')
# A number of 64 bits has no more digits than this, with its sign.
_MAX_DIGITS = 20


class AnyCase:
    """Falcon middleware that makes the case of media types irrelevant.

    Falcon compares media types as they are written; RFC 9110 compares them
    without case.
    """

    def process_request(
        self, req: falcon.Request, resp: falcon.Response
    ) -> None:
        if req.content_type is not None:
            req.content_type = req.content_type.lower()
        req.env['HTTP_ACCEPT'] = req.accept.lower()


class StrictJSON(falcon.media.BaseHandler):
    """A Falcon handler for ``application/json``, in requests.

    :param limit: bytes of the largest body that is read
    """

    exhaust_stream = False

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def deserialize(
        self, stream: falcon.typing.ReadableIO, content_type: str | None,
        content_length: int | None,
    ) -> object:
        if (content_length or 0) > self._limit:
            raise self._too_large()
        body = stream.read(self._limit + 1)
        if len(body) > self._limit:
            raise self._too_large()
        try:
            return loads(body)
        except ValueError as e:
            raise falcon.HTTPBadRequest(
                description=f'the request body is not JSON: {e}'
            ) from e

    def serialize(self, media: object, content_type: str) -> bytes:
        return json.dumps(media).encode()

    def _too_large(self) -> falcon.HTTPError:
        return falcon.HTTPContentTooLarge(
            description=f'the request body is longer than {self._limit} bytes'
        )


def loads(body: bytes) -> Any:
    """Return the value of a JSON text.

    :raises ValueError: if the text is not JSON, or not strict JSON
    :raises RecursionError: if the text is nested too deeply
    """
    value = json.loads(
        body.decode(), parse_int=_integer, parse_float=_float,
        parse_constant=_constant, object_pairs_hook=_object,
    )
    _check_texts(value)
    return value


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f'the number {text[:8]}… has too many digits')
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f'the number {text[:8]}… is out of range')
    return number


def _constant(text: str) -> float:
    raise ValueError(f'{text} is not a number')


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError('an object has the same key twice')
    return members


def _check_texts(value: Any) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and UNSTORABLE.search(item):
            raise ValueError('a string has a character that cannot be stored')
