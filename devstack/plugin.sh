#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What DevStack calls in each of its phases: plugin.sh MODE [PHASE]. The
# functions are in lib/blazar_sched; each looks itself at what this node runs.

# shellcheck source=devstack/lib/blazar_sched
source "$BLAZAR_SCHED_DIR/devstack/lib/blazar_sched"

case "$1 ${2:-}" in
    "stack pre-install")
        refuse_blazar
        ;;
    "stack install")
        echo_summary "Installing blazar-sched"
        install_blazar_sched
        ;;
    "stack post-config")
        echo_summary "Configuring blazar-sched"
        configure_blazar_sched
        configure_blazar_sched_nova
        configure_blazar_sched_horizon
        init_blazar_sched
        ;;
    "stack extra")
        echo_summary "Starting blazar-sched"
        start_blazar_sched
        ;;
    "stack test-config")
        configure_blazar_sched_tempest
        register_blazar_sched_hosts
        ;;
    "unstack ")
        stop_blazar_sched
        remove_blazar_sched_records
        ;;
    "clean ")
        cleanup_blazar_sched_nova
        cleanup_blazar_sched_horizon
        cleanup_blazar_sched
        ;;
esac
