# SPDX-License-Identifier: Apache-2.0
"""Entity tags: a response is not sent to a caller who has it (RFC 9110)."""

import dataclasses
import hashlib
from typing import Any

import falcon


@dataclasses.dataclass(frozen=True, slots=True)
class Tagged:
    """A body with its tag; a body of None is one that the caller has."""

    tag: str
    body: dict[str, Any] | None

    def set_headers(self, resp: falcon.Response) -> None:
        """Let only the caller keep the response, and ask again each time."""
        resp.set_header('ETag', f'W/"{self.tag}"')
        resp.cache_control = ['private', 'no-cache']


def is_known(req: falcon.Request, resp: falcon.Response, tag: str) -> bool:
    """Tag a response; return whether the caller has it, which sets 304."""
    Tagged(tag, None).set_headers(resp)
    if tag not in known(req) and not any_known(req):
        return False
    resp.status = falcon.HTTP_304
    return True


def tag_body(req: falcon.Request, resp: falcon.Response) -> None:
    """Tag a response with the hash of its body; omit a body that is known."""
    body = resp.render_body() or b''
    if is_known(req, resp, hashlib.blake2b(body, digest_size=16).hexdigest()):
        resp.media = None
        resp.delete_header('Content-Type')


def known(req: falcon.Request) -> list[str]:
    """Return the tags of If-None-Match: of the responses the caller has."""
    return [str(tag) for tag in req.if_none_match or () if tag != '*']


def any_known(req: falcon.Request) -> bool:
    """Tell whether the caller wants no response, whatever its tag."""
    return '*' in (req.if_none_match or ())
