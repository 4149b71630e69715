# SPDX-License-Identifier: Apache-2.0
"""Build the compiled timeline index.

Two switches in the environment, read at build time only:

- ``BLAZAR_SCHED_NO_EXTENSION=1`` forbids the extension: a pure-Python install.
- ``BLAZAR_SCHED_REQUIRE_EXTENSION=1`` refuses to install without it.

With neither, a machine without a compiler gets the plain-Python index, and
``blazar-sched status`` says so. Everything else is in pyproject.toml.
"""

import os

from setuptools import Extension
from setuptools import setup

COMPILED_MODULES = {
    'blazar_sched.ext._timeline': ['cython_src/timeline.pyx'],
}


def switched_on(name: str) -> bool:
    return os.environ.get(name, '') not in ('', '0')


def extensions(required: bool) -> list[Extension]:
    from Cython.Build import cythonize

    return cythonize(
        [
            Extension(
                module, sources, optional=not required,
                extra_compile_args=['-O3'],
            )
            for module, sources in COMPILED_MODULES.items()
        ],
        build_dir='build',
    )


def ext_modules() -> list[Extension]:
    forbidden = switched_on('BLAZAR_SCHED_NO_EXTENSION')
    required = switched_on('BLAZAR_SCHED_REQUIRE_EXTENSION')
    if forbidden and required:
        raise SystemExit(
            'BLAZAR_SCHED_NO_EXTENSION and BLAZAR_SCHED_REQUIRE_EXTENSION '
            'contradict each other: unset one of them.'
        )
    return [] if forbidden else extensions(required)


if __name__ == '__main__':
    setup(ext_modules=ext_modules())
