# SPDX-License-Identifier: Apache-2.0
"""The web page at ``/ui/``: its files, and the requests that only it sends.

The page is a client of the REST API like any other client. This module has
only the requests that a browser cannot send: Keystone answers no page of
another origin, so the page signs in at this service, which calls Keystone.
"""

from collections.abc import Iterable
import dataclasses
import hashlib
import pathlib
import re
from wsgiref import types as wsgi

import falcon
from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.parts.page import sign_in
from blazar_sched.service.api import errors
from blazar_sched.service.api import media
from blazar_sched.service.api.caller import Manager
from blazar_sched.service.api.route import Beside
from blazar_sched.service.clients import keystone

# The prefix of all paths of the page, and the paths.
PREFIX = '/ui'
FILE = f'{PREFIX}/{{name}}'
SETTINGS = f'{PREFIX}/settings'
TOKEN = f'{PREFIX}/token'
PROJECTS = f'{PREFIX}/projects'
WEBSSO = f'{PREFIX}/websso'
PATHS = (PREFIX, FILE, SETTINGS, TOKEN, PROJECTS, WEBSSO)

FOLDER = pathlib.Path(__file__).parent / 'ui'
INDEX = 'index.html'
# Files of other types, such as the README of the folder, are not served.
_TYPES = {
    '.css': 'text/css; charset=utf-8',
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.svg': 'image/svg+xml',
}
# The characters of a token of Keystone, and the most bytes of its form.
_TOKEN_ID = re.compile(r'[A-Za-z0-9._=-]+')
_MAX_FORM = 16384
# The page runs its own scripts, talks to its own origin, and cannot turn a
# text into markup or a script. Nothing of another origin is loaded, and no
# other page may frame it.
POLICY = '; '.join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
}


class Page:
    """A WSGI layer that answers below PREFIX, without a token."""

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts,
        manager: Manager,
    ) -> None:
        self._application = application
        self._page = _application(conf) if conf.api.serve_page else None

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        path = environ['PATH_INFO']
        of_page = path == PREFIX or path.startswith(f'{PREFIX}/')
        if self._page is None or not of_page:
            return self._application(environ, start_response)
        return self._page(environ, start_response)


LAYERS = (Beside(PATHS, Page),)


def _application(conf: cfg.ConfigOpts) -> errors.App:
    app = falcon.App(middleware=(_SafeHeaders(), media.AnyCase()))
    app.req_options.media_handlers = falcon.media.Handlers(
        {falcon.MEDIA_JSON: media.StrictJSON(conf.api.max_request_body_size)}
    )
    errors.register(app)
    app.add_route(PREFIX, _Redirection())
    files = _Files()
    app.add_route(FILE, files)
    app.add_route(SETTINGS, _Settings(conf.api))
    if conf.api.auth_strategy == 'keystone':
        client = keystone.load(conf)
        # The other threads of the API remain for callers with a token.
        attempts = sign_in.Attempts(max(1, conf.api.threads // 4))
        app.add_route(TOKEN, sign_in.Token(client, attempts))
        app.add_route(PROJECTS, sign_in.Projects(client, attempts))
        app.add_route(WEBSSO, _WebSSO(files))
    return app


class _SafeHeaders:
    """Falcon middleware that adds HEADERS to every response."""

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object,
        req_succeeded: bool,
    ) -> None:
        resp.set_headers(HEADERS)


class _Redirection:
    """The path without its slash, from which no relative link is right."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.status = falcon.HTTP_PERMANENT_REDIRECT
        # Relative: falcon.HTTPPermanentRedirect adds the Host header.
        resp.set_header('Location', f'{PREFIX[1:]}/')

    on_head = on_get


class _Settings:
    """The settings that the page needs before a user signs in."""

    def __init__(self, conf: cfg.ConfigOpts.GroupAttr) -> None:
        self._settings = {
            'auth_strategy': conf.auth_strategy, 'websso': conf.websso,
        }

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.cache_control = ['no-store']
        resp.media = self._settings

    on_head = on_get


@dataclasses.dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    content_type: str
    etag: str


class _Files:
    """The files of FOLDER, read once: no path of a request reaches the disk.
    """

    def __init__(self) -> None:
        self._files = {
            path.name: _read(path)
            for path in FOLDER.iterdir()
            if path.suffix in _TYPES
        }

    @property
    def index(self) -> bytes:
        """Return the document of the page."""
        return self._files[INDEX].content

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, name: str
    ) -> None:
        file = self._files.get(name or INDEX)
        if file is None:
            raise falcon.HTTPNotFound
        resp.etag = file.etag
        # A browser asks each time whether its copy is still the newest.
        resp.cache_control = ['no-cache']
        asked = req.if_none_match or ()
        if '*' in asked or file.etag in asked:
            resp.status = falcon.HTTP_NOT_MODIFIED
            return
        resp.content_type = file.content_type
        resp.data = file.content

    on_head = on_get


class _WebSSO:
    """The page, with the token with which Keystone sends a browser back.

    Keystone answers the browser with a form that the browser sends here. The
    script of the page checks that the sign-in began in the same tab.
    """

    def __init__(self, files: _Files) -> None:
        self._files = files

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        form = falcon.uri.parse_query_string(
            req.bounded_stream.read(_MAX_FORM).decode('ascii', 'replace')
        )
        token = form.get('token')
        if not isinstance(token, str) or not _TOKEN_ID.fullmatch(token):
            raise exception.InvalidInput('token: the form has no token')
        resp.content_type = _TYPES['.html']
        resp.cache_control = ['no-store']
        resp.data = self._files.index.replace(
            b'</head>', f'<meta name="token" content="{token}">\n</head>'
            .encode(), 1,
        )


def _read(path: pathlib.Path) -> _File:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return _File(content, _TYPES[path.suffix], digest)
