# SPDX-License-Identifier: Apache-2.0
"""The manager: what decides and does, behind an RPC end point."""
