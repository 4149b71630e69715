# SPDX-License-Identifier: Apache-2.0
"""Sample files, as their generators derive them from the code."""

import pathlib
import re

from oslo_config import cfg
from oslo_config import generator
from oslo_policy import generator as policy_generator
from oslo_policy import policy
import pytest
import yaml

from blazar_sched.conf import nova as nova_conf
from blazar_sched.conf import scheduler as scheduler_conf
from blazar_sched.conf import service as service_conf
from blazar_sched.service.api import deploy
from blazar_sched.service.api import policies
from tests import tables

ETC = pathlib.Path(__file__).parents[3] / 'etc'
# These options are registered when the object is loaded.
OF_OSLO_CONFIG = {
    'config_dir', 'config_file', 'config_source', 'shell_completion',
}


@pytest.fixture
def sample(tmp_path):
    """sample(name) -> the sample file of etc/<name>-generator.conf."""

    def make(name):
        path = tmp_path / f'{name}.sample'
        generator.main([
            '--config-file', str(ETC / f'{name}-generator.conf'),
            '--output-file', str(path),
        ])
        return path

    return make


def options(path):
    """Return the options of a sample: {(group, name): its line}."""
    found = {}
    group = None
    for line in path.read_text().splitlines():
        if heading := re.fullmatch(r'\[(\S+)\]', line):
            group = heading[1]
        elif option := re.match(r'#(\w+) =', line):
            found[group, option[1]] = line
    return found


def uncommented(path):
    """Write and return the sample with its default values enabled."""
    text = re.sub(r'^#(\w+ =)(?! <None>)', r'\1', path.read_text(), flags=re.M)
    real = path.with_suffix('.conf')
    real.write_text(text)
    return real


def registered(conf):
    """Yield all options that can be read: group, name."""
    for name in conf:
        if isinstance(conf[name], cfg.ConfigOpts.GroupAttr):
            yield from ((name, option) for option in conf[name])
        elif name not in OF_OSLO_CONFIG:
            yield 'DEFAULT', name


def deployed(path):
    """Return the configuration once the API has added its options."""
    conf = service_conf.load(files=[str(path)])
    conf.set_override('auth_strategy', 'keystone', 'api')
    deploy.deploy(conf, manager=None)
    return conf


def test_every_option_of_the_service_is_in_its_sample(sample, tmp_path):
    nothing = tmp_path / 'nothing.conf'
    nothing.touch()
    there = {
        (group, option)
        for group, option in registered(deployed(nothing))
        # oslo.messaging lists these options for no sample.
        if group not in service_conf._UNLISTED
    }
    assert ('api', 'port') in there
    assert ('keystone_authtoken', 'auth_type') in there
    assert ('oslo_policy', 'policy_file') in there
    assert there - set(options(sample('config'))) == set()


def test_the_sample_says_what_is_so_by_default(sample, tmp_path):
    nothing = tmp_path / 'nothing.conf'
    nothing.touch()
    as_it_is = service_conf.load(files=[str(nothing)])
    conf = deployed(uncommented(sample('config')))
    set_to = {
        (group, name): (conf[group][name], as_it_is[group][name])
        for group, name in registered(conf)
        if group in {each.GROUP for each in service_conf.GROUPS} - {'DEFAULT'}
        and (group, name) != ('api', 'auth_strategy')
    }
    assert set_to['manager', 'event_max_workers'][0] == 64
    # An option that may be repeated is shown with one empty value.
    for repeated in {'product', 'group_limit'} & {name for _, name in set_to}:
        shown, default = set_to['manager', repeated]
        set_to['manager', repeated] = [each for each in shown if each], default
    set_to['nova', 'pci_alias'] = nova_conf.pci_aliases(conf), {}
    assert {k: v for k, v in set_to.items() if v[0] != v[1]} == {}


@pytest.mark.parametrize(
    ('group', 'type_'),
    {
        'keystone': 'identity', 'nova': 'compute', 'placement': 'placement',
        **tables.of('CLIENTS'),
    }.items()
)
def test_the_sample_says_how_another_service_is_found(sample, group, type_):
    there = options(sample('config'))
    assert there[group, 'service_type'] == f'#service_type = {type_}'
    assert there[group, 'valid_interfaces'].endswith('= internal,public')
    # The usual parts of credentials.
    assert {'auth_url', 'username', 'password', 'project_name'} <= {
        name for of, name in there if of == group
    }


def test_every_policy_is_described(rules):
    for paragraph in rules.read_text().strip().split('\n\n'):
        assert re.match('# (?!Intended scope)', paragraph), paragraph


def test_the_sample_for_nova_loads_in_nova(sample):
    path = sample('nova-config')
    assert {name for _, name in options(path)} == {
        opt.dest for opt in scheduler_conf.opts
    }
    nova = cfg.ConfigOpts()
    nova.register_opt(cfg.StrOpt('state_path', default='/var/lib/nova'))
    scheduler_conf.register(nova)
    nova([], default_config_files=[str(uncommented(path))])
    scheduler_conf.check(nova)
    assert nova.blazar_sched.snapshot_path.startswith('/var/lib/nova/')


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / 'policy.yaml'
    policy_generator.generate_sample(
        [
            '--config-file', str(ETC / 'policy-generator.conf'),
            '--output-file', str(path),
        ],
        cfg.ConfigOpts(),
    )
    return path


def test_the_policy_sample_lists_every_rule(rules):
    shown = set(re.findall(r'^#"([^"]+)":', rules.read_text(), re.M))
    assert shown == {rule.name for rule in policies.list_rules()}


def test_the_policy_sample_is_what_holds_by_default(rules):
    text = re.sub('^#"', '"', rules.read_text(), flags=re.M)
    said = policy.Rules.from_dict(yaml.safe_load(text))
    for rule in policies.list_rules():
        assert str(said[rule.name]) == str(rule.check)
