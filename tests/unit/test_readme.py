# SPDX-License-Identifier: Apache-2.0
"""The commands and the configuration in the README and the guides are valid.

Commands are parsed by the parsers of their programs, and configuration by
oslo.config with the options of its readers. Text in angle brackets is for the
reader to fill in.
"""

import argparse
import collections
import contextlib
import functools
import importlib.metadata
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

from blazarclient import exception as client_exception
from keystoneauth1 import loading
from keystonemiddleware import audit as keystonemiddleware_audit
from keystonemiddleware import opts as keystonemiddleware_opts
from nova.conf import opts as nova_opts
from oslo_config import cfg
from oslo_middleware import opts as middleware_opts
from oslo_policy import opts as policy_opts
import pytest

from blazar_sched.cmd import main
from blazar_sched.conf import scheduler
from blazar_sched.conf import service
from tests import tables
from tests.waiting import PATIENCE
from tests.waiting import response

ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / 'README.md'
INSTALL = ROOT / 'doc/source/admin/install.rst'
PAGES = [
    README,
    ROOT / 'CONTRIBUTING.rst',
    ROOT / 'benchmarks/README.md',
    *sorted((ROOT / 'doc/source').rglob('*.rst')),
    *sorted((ROOT / 'doc/source/contributor').glob('*.md')),
]
SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
# In characters.
WIDTH = 79

# The page, the language and the text of a block.
Block = collections.namedtuple('Block', 'page language text')


def blocks(page):
    """Yield the blocks of code of a page, Markdown or reStructuredText."""
    text = page.read_text()
    if page.suffix == '.md':
        found = re.findall(r'^```(\w*)\n(.*?)^```$', text, re.M | re.S)
    else:
        found = re.findall(
            r'^ *\.\. code-block:: (\w+)\n\n((?:(?:   .*)?\n)+)', text, re.M
        )
    for language, code in found:
        yield Block(page, language, textwrap.dedent(code))


ALL = [block for page in PAGES for block in blocks(page)]


def commands(texts=None):
    """Return the commands of all pages, each as a list of words."""
    found = []
    for text in texts or [
        b.text for b in ALL if b.language in ('', 'console')
    ]:
        for line in text.replace('\\\n', '').splitlines():
            line = re.sub(r'^[$#] ', '', line)
            line = re.sub(r'<[^<>]+>', 'PLACEHOLDER', line)
            with contextlib.suppress(ValueError):
                # A comment or output, and no command.
                found.append(shlex.split(line.replace('…', ''), True))
    return [words for words in found if words]


def of(program, found=None):
    """Return the arguments of a program's commands."""
    return [
        words[1:]
        for words in found or commands()
        if pathlib.PurePath(words[0]).name == program
    ]


def name(words):
    return ' '.join(words)[:70]


def reads(parser, words):
    """Tell whether a parser accepts the words of a command."""
    try:
        parser.parse_args(words)
    except SystemExit as e:
        return e.code == 0
    except argparse.ArgumentTypeError:
        return False
    return True


@tables.EVERY
@pytest.mark.parametrize('words', of('blazar-sched'), ids=name)
def test_our_commands_are_read(words):
    assert reads(main.parser(), words)


def openstack(words):
    """Tell whether the openstack program accepts the words of a command.

    The command must be valid in a version of the API that it is for. Blazar's
    client checks values when it makes the request.

    :raises LookupError: if there is no such command
    """
    entry_points = importlib.metadata.entry_points()
    known = collections.defaultdict(list)
    for group in entry_points.groups:
        if re.match(r'openstack\.(?!cli)', group):
            for each in entry_points.select(group=group):
                known[each.name].append(each)
    for count in range(len(words), 0, -1):
        versions = known.get('_'.join(words[:count]).replace('-', '_'))
        if versions:
            made = [each.load()(None, None) for each in versions]
            return any(takes(each, words[count:]) for each in made)
    raise LookupError(' '.join(words))


def takes(command, words):
    """Tell whether a command of the openstack program accepts its arguments.
    """
    parser = command.get_parser('a command')
    if not reads(parser, words):
        return False
    if hasattr(command, 'args2body'):
        try:
            command.args2body(parser.parse_args(words))
        except client_exception.BlazarClientException:
            return False
    return True


@pytest.mark.parametrize('words', of('openstack'), ids=name)
def test_commands_of_openstack_are_read(words):
    assert openstack(words)


def test_commands_that_cannot_be_typed_are_found():
    [[ours], [theirs], [unread], [nobodys]] = [
        of(program, commands([text]))
        for program, text in (
            ('blazar-sched', '$ blazar-sched db downgrade'),
            ('openstack', '$ openstack reservation lease set --stretch 1d x'),
            ('openstack', '$ openstack reservation lease create --start-date'
                          ' soon --reservation resource_type=x,a=1 x'),
            ('openstack', '$ openstack reservation lease stretch x'),
        )
    ]
    assert not reads(main.parser(), ours)
    assert not openstack(theirs)
    assert not openstack(unread)
    with pytest.raises(LookupError):
        openstack(nobodys)


def cut(texts):
    """Return the lines of commands that are wider than a page."""
    return [
        line for text in texts for line in text.splitlines()
        if len(line) > WIDTH
    ]


def test_no_command_is_cut_at_the_width_of_a_page():
    shown = [b.text for b in ALL if b.language == 'console']
    assert cut(shown) == []
    assert cut([*shown, '$ ' + 'x' * WIDTH]) == ['$ ' + 'x' * WIDTH]


def test_the_commands_were_looked_at():
    assert {words[0] for words in of('blazar-sched')} >= {'db', 'serve'}
    assert len(of('openstack')) > 20


def targets():
    text = (ROOT / 'Makefile').read_text().replace('\\\n', ' ')
    lines = re.findall(r'^(?:TARGETS|IN_TEST) := (.*)$', text, re.M)
    return {*' '.join(lines).split(), 'clean'}


def test_targets_are_there():
    told = {
        words[0] for page in PAGES for words in of('make', commands(
            [b.text for b in blocks(page)]
        ))
    }
    inline = {
        target
        for page in PAGES
        for target in re.findall(r'`+make ([a-z-]+)`+', page.read_text())
    }
    assert told and told | inline <= targets()


def test_each_target_says_what_it_needs():
    text = (ROOT / 'CONTRIBUTING.rst').read_text()
    said = set(re.findall(r'^   \* - ``make ([a-z-]+)``$', text, re.M))
    assert targets() - {'clean'} == said


def unproven(text):
    """Return the targets that a text names, and that CI does not run."""
    script = (ROOT / '.ci/run').read_text()
    lines = re.findall(r'^make ([a-z -]+)', script, re.M)
    run = {word for line in lines for word in line.split()}
    return set(re.findall(r'(?:`|\$ )make ([a-z-]+)', text)) - run


def test_targets_of_the_readme_are_run_by_ci():
    text = README.read_text()
    assert unproven(text) == set()
    assert unproven(f'{text} `make made-up`') == {'made-up'}


_AUTH = (
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(), *loading.get_adapter_conf_options(),
    *loading.get_auth_plugin_conf_options('password'),
)


@functools.cache
def of_the_service():
    """Return the options of blazar-sched.conf by group."""
    known = collections.defaultdict(dict)
    conf = service.load(files=[])
    for group, options in [
        *((group, group_s._opts) for group, group_s in conf._groups.items()),
        ('DEFAULT', conf._opts),
    ]:
        for dest, held in options.items():
            known[group][dest] = held['opt']
    libraries = (
        *keystonemiddleware_audit.list_opts(),
        *keystonemiddleware_opts.list_auth_token_opts(),
        *middleware_opts.list_opts_healthcheck(),
        *middleware_opts.list_opts_http_proxy_to_wsgi(),
        *policy_opts.list_opts(),
        *((group, _AUTH) for group in (
            'keystone', 'keystone_authtoken', 'neutron', 'nova', 'placement',
        )),
    )
    for group, opts in libraries:
        for opt in opts:
            known[str(group)][opt.dest] = opt
    return known


@functools.cache
def of_nova():
    """Return the options of nova.conf by group, including blazar-sched's."""
    known = collections.defaultdict(dict)
    for group in ('DEFAULT', *of_the_service()):
        # The options of the libraries that both use.
        if group == 'DEFAULT' or group.startswith('oslo_'):
            known[group] |= of_the_service()[group]
    for group, opts in (*nova_opts.list_opts(), *scheduler.list_opts()):
        for opt in opts:
            known[str(getattr(group, 'name', group))][opt.dest] = opt
    return known


def wrong(text, known, path):
    """Return the unknown options in a piece of configuration.

    :param known: options by group
    :param path: where it may be written to
    :raises oslo_config.cfg.Error: if a value cannot be read
    :raises ValueError: the same
    """
    # Commented options must be valid as well.
    path.write_text(re.sub(r'^# (?=[a-z_]+ = )', '', text, flags=re.M))
    sections = {}
    cfg.ConfigParser(str(path), sections).parse()
    conf = cfg.ConfigOpts()
    found, there = [], []
    for group, values in sections.items():
        for key in values:
            opt = known[group].get(key)
            if opt is None:
                found.append(f'[{group}] {key}')
                continue
            conf.register_opt(opt, None if group == 'DEFAULT' else group)
            there.append((group, opt.dest))
    # The options to which other values refer.
    conf.register_opt(cfg.StrOpt('state_path', default=''))
    conf([], default_config_files=[str(path)])
    for group, dest in there:
        getattr(conf if group == 'DEFAULT' else conf[group], dest)
    return found


def is_paste(text):
    return bool(re.search(r'^\[\w+:\w+\]$', text, re.M))


INI = [b for b in ALL if b.language == 'ini']


@tables.EVERY
@pytest.mark.parametrize(
    'block', [b for b in INI if not is_paste(b.text)],
    ids=lambda b: f'{b.page.name}-{b.text[:40]!r}',
)
def test_configuration_is_read(block, tmp_path):
    """The configuration is that of the service or of Nova."""
    path = tmp_path / 'block.conf'
    lacking = [
        wrong(block.text, known, path)
        for known in (of_the_service(), of_nova())
    ]
    assert [] in lacking, min(lacking, key=len)


@pytest.mark.parametrize('text', [
    '[manager]\nsync_intervall = 300\n', '[managers]\nsync_interval = 300\n',
    '[manager]\n# sync_intervall = 300\n',
])
def test_configuration_that_nobody_reads_is_found(text, tmp_path):
    path = tmp_path / 'block.conf'
    assert wrong(text, of_the_service(), path) != []


def test_configuration_that_cannot_be_read_is_found(tmp_path):
    with pytest.raises(ValueError):
        wrong(
            '[manager]\nsync_interval = often\n', of_the_service(),
            tmp_path / 'block.conf',
        )


@pytest.mark.parametrize(
    'block', [b for b in ALL if b.language == 'json'],
    ids=lambda b: f'{b.page.name}-{b.text[:40]!r}',
)
def test_json_is_read(block):
    json.loads(block.text)


@pytest.fixture
def home(tmp_path, port):
    """A folder with the configuration of the guide, except for the port."""
    folder = tmp_path / '.blazar-sched'
    folder.mkdir()
    [text] = [b.text for b in blocks(INSTALL) if 'noauth' in b.text]
    (folder / 'blazar-sched.conf').write_text(f'{text}\nport = {port}\n')
    return tmp_path, port


def start(words, folder, **kwargs):
    return subprocess.Popen(
        [SCRIPT, *words], cwd=folder, text=True,
        env={**os.environ, 'HOME': str(folder)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, **kwargs,
    )


def test_the_service_of_the_guide_runs(home):
    """The commands are `db upgrade`, `status` and `serve`, as in the guide.
    """
    folder, port = home
    told = [' '.join(words) for words in of('blazar-sched', commands(
        [b.text for b in blocks(INSTALL)]
    ))]
    for command in ('db upgrade', 'status'):
        assert command in told
        run = start(command.split(), folder)
        said, _ = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, said
    assert 'serve' in told
    process = start(['serve'], folder)
    try:
        answer = response(process, f'http://127.0.0.1:{port}/v1/leases')
        assert (answer.status_code, answer.json()) == (200, {'leases': []})
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (folder / 'blazar-sched.sqlite').exists()
