# SPDX-License-Identifier: Apache-2.0
"""The whole service in one thread, with random faults drawn from a seed.

README.md says what is real, how to repeat a seed, and how to add to the
simulation.
"""
