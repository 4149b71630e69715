# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement as the clients see them, in simulated time.

Each file has one subject and a base class of `cloud.SimulatedCloud`.
"""
