# SPDX-License-Identifier: Apache-2.0
"""The whole service in one thread, from a seed, with everything going wrong.

Real: API, managers, event runner, drivers, ledger on SQLite, replicas. Not
real, because time and trouble must come from the seed: the clocks, the bus,
and Nova with Placement, at the edge where the clients call them.

``python -m tests.simulation --seeds 1000`` tries seeds 0 to 999 and prints
those that fail; ``--seed 4711`` plays one again and tells what happens.
"""
