# SPDX-License-Identifier: Apache-2.0
"""Build the compiled timeline index.

Variables of the environment, read at build time only:

- ``BLAZAR_SCHED_NO_EXTENSION=1`` forbids the extension: a pure-Python install.
- ``BLAZAR_SCHED_REQUIRE_EXTENSION=1`` refuses to install without it.
- ``CFLAGS``, as for any extension, replaces the optimization chosen here.

With neither of the first two, a machine without a compiler gets the
plain-Python index, and ``blazar-sched status`` says so. Everything else is in
pyproject.toml.
"""

import os
import pathlib

from setuptools import Extension
from setuptools import setup
from setuptools.command import bdist_wheel
from setuptools.command import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
SOURCES = ROOT / 'cython_src'
# The path of a source below cython_src is the name of its module.
COMPILED_MODULES = {
    '.'.join(path.relative_to(SOURCES).with_suffix('').parts):
        [str(path.relative_to(ROOT))]
    for path in sorted(SOURCES.rglob('*.pyx'))
}
DIRECTIVES = {
    'boundscheck': False,
    'cdivision': True,
    'initializedcheck': False,
    'language_level': 3,
    'wraparound': False,
}


class BuildExt(build_ext.build_ext):
    """Leaves in the distribution the extensions that were built."""

    def initialize_options(self) -> None:
        super().initialize_options()
        # As many compilers at a time as there are processors.
        self.parallel = True

    def run(self) -> None:
        self.distribution.ext_modules = []
        super().run()

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception:
            # An earlier build's would be taken for it.
            built = pathlib.Path(self.get_ext_fullpath(ext.name))
            built.unlink(missing_ok=True)
            raise
        self.distribution.ext_modules.append(ext)


class BdistWheel(bdist_wheel.bdist_wheel):
    """Names a wheel for any platform if it has no extension after all."""

    def run(self) -> None:
        self.run_command('build')
        self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()


def switched_on(name: str) -> bool:
    return os.environ.get(name, '') not in ('', '0')


def extensions(required: bool) -> list[Extension]:
    from Cython.Build import cythonize

    # setuptools puts these after CFLAGS, and the last one counts.
    optimization = [] if os.environ.get('CFLAGS') else ['-O3', '-g0']
    built = cythonize(
        [
            Extension(module, sources, extra_compile_args=optimization)
            for module, sources in COMPILED_MODULES.items()
        ],
        build_dir='build', compiler_directives=DIRECTIVES,
        include_path=['cython_src'],
    )
    # Not all versions of Cython keep what an Extension was made with here.
    for extension in built:
        extension.optional = not required
    return built


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
    setup(
        ext_modules=ext_modules(),
        cmdclass={'bdist_wheel': BdistWheel, 'build_ext': BuildExt},
    )
