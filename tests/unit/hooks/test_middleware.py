# SPDX-License-Identifier: Apache-2.0
"""The middleware in nova-api, between a web server and Nova."""

import io
import json
import logging
import types

from oslo_config import cfg
from oslo_middleware import sizelimit
import pytest
import webob

from blazar_sched.domain import exception
from blazar_sched.hooks import hints
from blazar_sched.hooks import middleware
from blazar_sched.replica import limited_log
from tests import overriding

NOW = 1_900_000_000
SERVER = {'name': 'x', 'flavorRef': '1'}
HINTS = 'os:scheduler_hints'
OLD_HINTS = 'OS-SCH-HNT:scheduler_hints'
LATER = {'lease_end': '2030-03-17T17:47:40Z'}
MONTH_ON = {'lease_default_end': '2030-04-16T17:46:40Z'}


class Nova:
    """A Nova that accepts every request."""

    def __init__(self):
        self.requests = []

    def __call__(self, environ, start_response):
        request = webob.Request(environ)
        self.requests.append((request, request.body))
        start_response('202 Accepted', [])
        return [b'{}']


@pytest.fixture
def nova():
    return Nova()


@pytest.fixture
def ask(nova):
    """ask(body, **…) -> (the response, the body that Nova got, if any)."""
    guarded = middleware.Middleware(nova, clock=lambda: NOW + 0.9)

    def ask(body, path='/servers', method='POST', project_id='p1', **environ):
        request = webob.Request.blank(path, method=method, environ={
            'nova.context': types.SimpleNamespace(project_id=project_id),
            **environ,
        })
        request.body = (
            body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        answer = request.get_response(guarded)
        return answer, nova.requests.pop()[1] if nova.requests else None

    return ask


@pytest.fixture
def configure():
    with overriding.options() as override:
        yield override


@pytest.mark.parametrize('path', [
    '/servers', '/0123abcd-ef/servers', '/os-volumes_boot',
    '/0123abcd/os-volumes_boot', '/servers\n',
], ids=repr)
def test_every_way_to_boot(ask, path):
    _, got = ask({'server': SERVER, HINTS: {'lifetime': '60'}}, path)
    assert json.loads(got)[HINTS] == {'lifetime': '60', **LATER}
    answer, got = ask({'server': SERVER, HINTS: {'lifetime': 'x'}}, path)
    assert (answer.status_int, got) == (400, None)


@pytest.mark.parametrize('method, path', [
    ('PUT', '/servers'), ('GET', '/servers'), ('POST', '/servers/'),
    ('POST', '/servers/x/action'), ('POST', '/flavors'), ('POST', '/'),
    ('POST', ''), ('POST', '/xyz/servers'), ('POST', '/servers/detail'),
])
def test_body_of_other_requests_is_not_read(nova, method, path):
    class Unread:
        def read(self, *args):
            raise AssertionError('read')

    environ = webob.Request.blank('/', method=method).environ | {
        'PATH_INFO': path, 'wsgi.input': Unread(), 'CONTENT_LENGTH': '9',
    }
    seen = []
    middleware.Middleware(lambda *args: seen.append(args))(environ, None)
    assert seen == [(environ, None)]


def test_request_keeps_all_fields_and_hints(ask):
    said = {
        'server': {**SERVER, 'metadata': {'a': '\u00e9\ud800'}, 'x': 1e999},
        HINTS: {'lifetime': '60', 'group': 'g', 'query': [None]},
        'more': [1, 2.5, None],
    }
    _, got = ask(said)
    assert json.loads(got) == {**said, HINTS: {**said[HINTS], **LATER}}


class TestKey:
    @pytest.mark.parametrize('key', [HINTS, OLD_HINTS])
    def test_hints_have_either_key(self, ask, key):
        _, got = ask({'server': SERVER, key: {'lifetime': '60'}})
        assert json.loads(got) == {
            'server': SERVER, key: {'lifetime': '60', **LATER}
        }

    def test_the_one_that_nova_goes_by(self, ask):
        both = {HINTS: {'lifetime': '60'}, OLD_HINTS: {'lifetime': 'x'}}
        _, got = ask({'server': SERVER, **both})
        assert json.loads(got)[HINTS] == {'lifetime': '60', **LATER}
        assert json.loads(got)[OLD_HINTS] == {'lifetime': 'x'}


@pytest.mark.parametrize('project_id', ['p1', None])
def test_a_refusal_is_as_novas(ask, project_id):
    answer, got = ask(
        {'server': SERVER, HINTS: {'lifetime': 'soon'}}, project_id=project_id
    )
    assert got is None
    assert answer.status == '400 Bad Request'
    assert answer.content_type == 'application/json'
    assert answer.json == {'badRequest': {
        'code': 400,
        'message': "lifetime 'soon' must be a duration: digits and s, m, "
        'h, d or w',
    }}


@pytest.mark.parametrize('body', [
    b'', b'{', b'null', b'7', b'"x"', b'[]', b'[' * 100_000,
    b'{"a": ' + b'9' * 5000 + b'}', b'\xff\xfe{}', b'\xef\xbb\xbf{}',
    json.dumps({HINTS: {'lifetime': 'x'}}).encode('utf-16'),
    b'{"os:scheduler_hints": null}', b'{"os:scheduler_hints": []}',
    b'{"os:scheduler_hints": "lifetime"}',
    b'{"os:scheduler_hints":  {"a": 1}, "OS-SCH-HNT:scheduler_hints": 7}',
    b'{"server":  {}}',
    b'{"os:scheduler_hints": {"lifetime": "x"}, "os:scheduler_hints": 1}',
], ids=lambda body: repr(body[:40]))
def test_what_is_no_hint_is_left_to_nova(ask, body):
    assert ask(body)[1] == body


class TestDefault:
    """C33: each option by itself, and the values that override it."""

    def hints(self, ask, **kwargs):
        return json.loads(ask({'server': SERVER}, **kwargs)[1]).get(HINTS)

    @pytest.mark.row('C33', 'C34', 'F53')
    def test_of_the_cloud(self, ask, configure):
        assert self.hints(ask) is None
        configure(default_lifetime='30d')
        assert self.hints(ask) == MONTH_ON
        assert self.hints(ask, project_id=None) == MONTH_ON

    @pytest.mark.row('C33', 'F53')
    def test_of_a_project(self, ask, configure):
        configure(project_default_lifetimes={'p1': '30d'})
        assert self.hints(ask) == MONTH_ON
        assert self.hints(ask, project_id='p2') is None

    @pytest.mark.row('C33')
    def test_the_projects_goes_before_the_clouds(self, ask, configure):
        configure(
            default_lifetime='1h',
            project_default_lifetimes={'p1': '30d', 'p2': ''},
        )
        assert self.hints(ask) == MONTH_ON
        assert self.hints(ask, project_id='p2') is None
        assert self.hints(ask, project_id='p3') == {
            'lease_default_end': '2030-03-17T18:46:40Z'
        }

    def test_behind_no_keystonecontext(self, ask, configure):
        configure(default_lifetime='30d')
        assert self.hints(ask, **{'nova.context': None}) == MONTH_ON

    @pytest.mark.row('C33')
    def test_the_users_own_wins(self, ask, configure):
        configure(default_lifetime='30d')
        _, got = ask({'server': SERVER, HINTS: {'lifetime': '60'}})
        assert json.loads(got)[HINTS] == {'lifetime': '60', **LATER}


class TestLength:
    """The application after the middleware reads exactly the whole body."""

    BODY = json.dumps({HINTS: {'lifetime': '60'}}).encode()

    def environ(self, **fields):
        blank = webob.Request.blank('/servers', method='POST').environ
        return blank | fields

    def test_content_length_is_of_the_new_body(self, nova):
        rest = io.BytesIO(self.BODY + b'the next request')
        environ = self.environ(**{
            'wsgi.input': rest, 'CONTENT_LENGTH': str(len(self.BODY)),
        })
        guarded = middleware.Middleware(nova, clock=lambda: NOW)
        webob.Request(environ).get_response(guarded)
        [(request, got)] = nova.requests
        assert json.loads(got)[HINTS] == {'lifetime': '60', **LATER}
        assert request.environ['CONTENT_LENGTH'] == str(len(got))
        assert rest.read() == b'the next request'

    @pytest.mark.parametrize('limit', [len(BODY), len(BODY) - 1])
    def test_in_chunks_up_to_novas_limit(self, nova, limit):
        conf = cfg.ConfigOpts()
        guarded = sizelimit.RequestBodySizeLimiter(
            middleware.Middleware(nova, clock=lambda: NOW), conf
        )
        conf.set_override('max_request_body_size', limit, 'oslo_middleware')
        environ = self.environ(**{
            'wsgi.input': io.BytesIO(self.BODY), 'wsgi.input_terminated': True,
        })
        answer = webob.Request(environ).get_response(guarded)
        if limit < len(self.BODY):
            assert (answer.status_int, nova.requests) == (413, [])
        else:
            [(_, got)] = nova.requests
            assert json.loads(got)[HINTS] == {'lifetime': '60', **LATER}

    def test_unknown_and_unreadable_is_left_as_it_is(self, nova):
        body = io.BytesIO(self.BODY)
        environ = self.environ(**{'wsgi.input': body})
        webob.Request(environ).get_response(middleware.Middleware(nova))
        [(request, _)] = nova.requests
        assert request.environ['wsgi.input'] is body
        assert body.read() == self.BODY


class TestNeverBreaksNova:
    @pytest.fixture(autouse=True)
    def failure(self, monkeypatch):
        """A repeated failure is not logged again at once."""
        fresh = limited_log.LimitedLog(middleware.LOG)
        monkeypatch.setattr(middleware, 'failure', fresh)
        return fresh

    def test_an_error_of_ours(self, ask, monkeypatch, failure, caplog):
        def complete(*args):
            raise RuntimeError('ours')

        monkeypatch.setattr(hints, 'complete', complete)
        body = json.dumps({HINTS: {'lifetime': 'x'}}).encode()
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                answer, got = ask(body)
                assert (answer.status_int, got) == (202, body)
        assert failure.count == 3
        [told] = caplog.records
        assert 'RuntimeError: ours' in told.getMessage()
        assert told.exc_info

    def test_an_error_of_novas_is_its_own(self):
        def nova(environ, start_response):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            webob.Request.blank('/servers', POST=b'{}').get_response(
                middleware.Middleware(nova)
            )


class TestFactory:
    @pytest.fixture(autouse=True)
    def snapshot_path(self, configure):
        """The default path refers to an option of Nova's."""
        configure(snapshot_path='')

    def test_makes_the_filter(self, nova):
        made = middleware.factory({'here': '/etc/nova'})(nova)
        assert webob.Request.blank('/').get_response(made).status_int == 202

    @pytest.mark.parametrize('options', [
        {'default_lifetime': 'a month'},
        {'project_default_lifetimes': {'p1': '1 h'}},
    ], ids=str)
    def test_a_bad_option_stops_nova_from_starting(self, configure, options):
        configure(**options)
        [name] = options
        with pytest.raises(exception.InvalidInput, match=name):
            middleware.factory({})
