# SPDX-License-Identifier: Apache-2.0
"""A node on which DevStack's scripts run with the plugin.

`devstack.sh` is the stand-in for DevStack.
"""

from collections.abc import Mapping
import importlib.metadata
import os
import pathlib
import shlex
import subprocess
import sys

from nova.conf import notifications
from nova.conf import scheduler
from oslo_config import cfg
from oslo_messaging import opts as messaging

from blazar_sched.conf import scheduler as ours
from blazar_sched.conf import service

REPOSITORY = pathlib.Path(__file__).parents[2]
SCRIPTS = pathlib.Path(__file__).with_name('devstack.sh')
# The folder of the console script.
PROGRAMS = pathlib.Path(sys.executable).parent
CONTROLLER = 'mysql,rabbit,key,n-api,n-sch,n-cpu,placement-api,neutron,tempest'


def api_paste_ini() -> pathlib.Path:
    """Return the path of Nova's installed api-paste.ini."""
    [path] = [
        pathlib.Path(file.locate())
        for file in importlib.metadata.files('nova')
        if file.name == 'api-paste.ini'
    ]
    return path


class Node:
    """A node after DevStack's scripts.

    :param state: a folder for all files of the node
    :param programs: the folder of `blazar-sched`; else one whose program does
        nothing
    :param plugin: the repository of the plugin
    :param settings: the settings in local.conf, and the URLs of the database
        and the broker
    """

    def __init__(
        self, state: pathlib.Path, programs: pathlib.Path | None = None,
        plugin: pathlib.Path = REPOSITORY, **settings: str,
    ) -> None:
        self.state = state
        self._plugin = plugin
        self._settings = settings
        self.etc = state / 'etc'
        self.nova_conf = self.etc / 'nova/nova.conf'
        self.api_paste = self.etc / 'nova/api-paste.ini'
        self.conf = self.etc / 'blazar-sched/blazar-sched.conf'
        self._programs = programs or self._nothing()
        self.api_paste.parent.mkdir(parents=True)

    def _nothing(self) -> pathlib.Path:
        programs = self.state / 'bin'
        programs.mkdir()
        program = programs / 'blazar-sched'
        program.write_text('#!/bin/sh\n')
        program.chmod(0o755)
        return programs

    def stack(self) -> None:
        self._run('stack')

    def unstack(self) -> None:
        self._run('unstack')

    def clean(self) -> None:
        """Run clean.sh, which runs unstack.sh first."""
        self._run('unstack')
        self._run('clean')

    def _run(self, script: str) -> None:
        environment = {
            'PATH': os.environ['PATH'],
            'STATE': self.state,
            'PLUGIN': self._plugin,
            'BIN_DIR': self._programs,
            'API_PASTE_INI': api_paste_ini(),
            'ENABLED_SERVICES': CONTROLLER,
            'DATABASE_URL': (
                'mysql+pymysql://root:secret@127.0.0.1/blazar_sched'
                '?charset=utf8&plugin=dbcounter'
            ),
            'TRANSPORT_URL': 'rabbit://stackrabbit:secret@127.0.0.1:5672/',
            **self._settings,
        }
        done = subprocess.run(
            ['bash', SCRIPTS, script],
            env={name: str(value) for name, value in environment.items()},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        assert done.returncode == 0, done.stdout
        assert not self.lines('died'), done.stdout

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file that stands for a service."""
        path = self.state / name
        return path.read_text().splitlines() if path.exists() else []

    def commands(self) -> dict[str, list[str]]:
        """Return the command lines of the running processes, by name."""
        words = map(shlex.split, self.lines('processes'))
        return {name: command for name, *command in words}

    def files(self) -> Mapping[str, str]:
        """Return all configuration files, by their paths below /etc."""
        return {
            str(path.relative_to(self.etc)): path.read_text()
            for path in sorted(self.etc.rglob('*'))
            if path.is_file()
        }

    def service_options(self) -> cfg.ConfigOpts:
        """Return the configuration as the service reads it."""
        return service.load(files=[str(self.conf)])

    def nova_options(self) -> cfg.ConfigOpts:
        """Return nova.conf as Nova and the filters read it."""
        conf = cfg.ConfigOpts()
        scheduler.register_opts(conf)
        notifications.register_opts(conf)
        for group, opts in messaging.list_opts():
            conf.register_opts(opts, group=group)
        ours.register(conf)
        conf(
            [], default_config_files=[str(self.nova_conf)],
            default_config_dirs=[],
        )
        return conf
