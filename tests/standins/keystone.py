# SPDX-License-Identifier: Apache-2.0
"""A Keystone behind real HTTP: tokens, trusts and users, as by version 30.

Of its API it has what `clients.keystone` and keystonemiddleware ask for, and a
service ``compute`` that says who asks. Names are ids.
"""

import datetime
from http import server
import json
import threading
import uuid

from keystoneauth1 import fixture

SERVICE = 'blazar-sched'
# The scope of a token that is for no project.
SYSTEM = 'system'


class KeystoneServer:
    """Users by name, with their roles by project; `asked` is the log.

    A trust lives as long as its trustor; it is of use while they are enabled
    and have its roles.
    """

    def __init__(self):
        self.asked = []
        self.tokens = {}
        self.trusts = {}
        self.roles = {}
        self.emails = {}
        # Application credentials: the user, the project and the secret.
        self.credentials = {}
        # Unified limits, for users with a token of the system scope.
        self.limits = {'services': [], 'registered_limits': [], 'limits': []}
        # How long tokens last.
        self.lifetime = datetime.timedelta(hours=1)
        self.disabled = set()
        # The status of every answer, if it is an error: True for 503.
        self.broken = False
        # Each request releases `entered`, and is answered once `gate` is set.
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()
        self.add_user(SERVICE, service=['admin'])
        self._server = server.ThreadingHTTPServer(
            ('127.0.0.1', 0), type('Handler', (_Handler,), {'cloud': self})
        )
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        ).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def configuration(self):
        """Return the options that name it."""
        return (
            '[keystone]\n'
            'auth_type = password\n'
            f'auth_url = {self.url}\n'
            f'username = {SERVICE}\n'
            'user_domain_name = Default\n'
            'password = secret\n'
            'project_name = service\n'
            'project_domain_name = Default\n'
        )

    def add_user(self, name, **projects):
        self.roles[name] = {p: set(names) for p, names in projects.items()}

    def delete_user(self, name):
        """Its trusts and tokens go with it."""
        del self.roles[name]
        for id_, trust in list(self.trusts.items()):
            if name in (trust['trustor_user_id'], trust['trustee_user_id']):
                del self.trusts[id_]
        self.revoke(name)

    def revoke(self, name):
        self.tokens = {
            t: who for t, who in self.tokens.items() if who[0] != name
        }

    def issue(self, user, project, delegated=False):
        """Return a new token."""
        token = f'token-{uuid.uuid4().hex}'
        self.tokens[token] = (user, project, delegated)
        return token

    def answer(self, method, path, token, body, subject=None):
        """Return a status, a document and headers."""
        path = path.partition('?')[0]
        self.asked.append((method, path))
        self.entered.release()
        self.gate.wait(10)
        if self.broken:
            status = 503 if self.broken is True else self.broken
            return status, {'error': 'MySQL server on 10.20.30.40'}, {}
        match method, path.strip('/').split('/'):
            case 'GET', ['']:
                return 300, fixture.DiscoveryList(self.url, v2=False), {}
            case 'GET', ['v3']:
                return 200, {'version': fixture.V3Discovery(self.url)}, {}
            case _, ['v3', 'auth', 'tokens']:
                return self._answer_tokens(method, token, body, subject)
            case 'GET', ['v3', 'auth', 'projects']:
                return self._list_projects(token)
            case 'POST', ['v3', 'OS-TRUST', 'trusts']:
                return self._create_trust(token, body['trust'])
            case 'DELETE', ['v3', 'OS-TRUST', 'trusts', id_]:
                return self._delete_trust(token, id_)
            case 'GET', ['v3', 'users' | 'projects' as noun, name]:
                show = {'users': self._show_user}.get(noun, self._show_project)
                return show(token, name)
            case 'GET', ['compute', 'whoami']:
                return self._say_who(token)
        return self._list_limits(path.removeprefix('/v3/'), token)

    def _list_limits(self, noun, token):
        if noun not in self.limits:
            return 404, {}, {}
        if self.tokens[token][1] != SYSTEM:
            return 403, {}, {}
        return 200, {noun: self.limits[noun]}, {}

    def _answer_tokens(self, method, token, body, subject):
        if method == 'POST':
            return self._authenticate(body['auth'])
        if method == 'DELETE':
            return self._revoke(token, subject)
        return self._validate(token, subject)

    def _authenticate(self, auth):
        identity, scope = auth['identity'], auth.get('scope')
        match identity['methods']:
            case ['token']:
                id_ = identity['token']['id']
                name = self.tokens.get(id_, (None,))[0]
            case ['application_credential']:
                given = identity['application_credential']
                known = self.credentials.get(given['id'])
                if known is None or known[-1] != given['secret']:
                    return 401, {}, {}
                return self._grant(*known[:2], True)
            case _:
                user = identity['password']['user']
                name = user['name'] if user['password'] == 'secret' else None
        if name not in self.roles:
            return 401, {}, {}
        if scope == 'unscoped' or 'system' in scope:
            return self._grant(
                name, SYSTEM if 'system' in scope else None, False
            )
        if 'project' in scope:
            [project] = {'id', 'name'} & scope['project'].keys()
            project = scope['project'][project]
            if project not in self.roles[name]:
                return 401, {}, {}
            return self._grant(name, project, False)
        trust = self.trusts.get(scope['OS-TRUST:trust']['id'])
        if trust is None:
            return 401, {}, {}
        trustor, project = trust['trustor_user_id'], trust['project_id']
        held = self.roles[trustor].get(project, set())
        lent = {role['name'] for role in trust['roles']}
        if trustor in self.disabled or not lent <= held:
            return 403, {}, {}
        return self._grant(trustor, project, True)

    def _grant(self, user, project, delegated):
        token = self.issue(user, project, delegated)
        return 201, self._document(token), {'X-Subject-Token': token}

    def _document(self, token):
        user, project, _ = self.tokens[token]
        own = {'project_name': project} if project else {}
        granted = fixture.V3Token(
            user_id=user, user_name=user, project_id=project, **own,
            expires=datetime.datetime.now(datetime.UTC) + self.lifetime,
        )
        for role in sorted(self.roles[user].get(project, ())):
            granted.add_role(name=role)
        for type_, path in {'identity': '', 'compute': '/compute'}.items():
            granted.add_service(type_).add_standard_endpoints(
                public=self.url + path
            )
        return granted

    def _validate(self, token, subject):
        if token not in self.tokens:
            return 401, {}, {}
        if subject not in self.tokens:
            return 404, {}, {}
        headers = {'X-Subject-Token': subject}
        return 200, self._document(subject), headers

    def _revoke(self, token, subject):
        if token not in self.tokens:
            return 401, {}, {}
        self.tokens.pop(subject, None)
        return 204, None, {}

    def _list_projects(self, token):
        if token not in self.tokens:
            return 401, {}, {}
        projects = [
            {'id': each, 'name': each, 'enabled': True}
            for each in self.roles[self.tokens[token][0]]
        ]
        return 200, {'projects': projects}, {}

    def _create_trust(self, token, trust):
        if token not in self.tokens:
            return 401, {}, {}
        user, project, delegated = self.tokens[token]
        if delegated or user != trust['trustor_user_id']:
            return 403, {}, {}
        lent = {role['name'] for role in trust['roles']}
        if not lent <= self.roles[user].get(trust['project_id'], set()):
            return 404, {}, {}
        id_ = uuid.uuid4().hex
        self.trusts[id_] = trust
        return 201, {'trust': {'id': id_, **trust}}, {}

    def _delete_trust(self, token, id_):
        if token not in self.tokens:
            return 401, {}, {}
        if id_ not in self.trusts:
            return 404, {}, {}
        user, project, _ = self.tokens[token]
        trustor = self.trusts[id_]['trustor_user_id']
        if user != trustor and 'admin' not in self.roles[user][project]:
            return 403, {}, {}
        del self.trusts[id_]
        return 204, None, {}

    def _show_user(self, token, name):
        if token not in self.tokens:
            return 401, {}, {}
        user, project, _ = self.tokens[token]
        if 'admin' not in self.roles[user][project] and user != name:
            return 403, {}, {}
        if name not in self.roles:
            return 404, {}, {}
        shown = {'id': name, 'name': name}
        if name in self.emails:
            shown['email'] = self.emails[name]
        return 200, {'user': shown}, {}

    def _show_project(self, token, name):
        user, project, _ = self.tokens[token]
        if 'admin' not in self.roles[user][project]:
            return 403, {}, {}
        # MySQL compares without regard to case.
        for known in {p for roles in self.roles.values() for p in roles}:
            if known.lower() == name.lower():
                return 200, {'project': {'id': known}}, {}
        return 404, {}, {}

    def _say_who(self, token):
        if token not in self.tokens:
            return 401, {}, {}
        user, project, _ = self.tokens[token]
        return 200, {'user': user, 'project': project}, {}


class _Handler(server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def _answer(self):
        length = int(self.headers.get('Content-Length', 0))
        body = json.loads(self.rfile.read(length)) if length else None
        status, document, headers = self.cloud.answer(
            self.command, self.path, self.headers.get('X-Auth-Token'), body,
            self.headers.get('X-Subject-Token'),
        )
        said = b'' if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_DELETE = _answer

    def log_message(self, *args):
        pass
