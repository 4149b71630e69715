#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# As much of DevStack as the plugin sees of it, for one node:
# devstack.sh stack|unstack|clean
#
# Its functions have DevStack's names and arguments. Those for INI files edit
# them; Keystone, the database, the broker and systemd are files in $STATE that
# say what is there; what would be installed is noted only. Where DevStack's
# own would spoil something without a word, these die.
#
# Of the environment: STATE, PLUGIN (the repository), BIN_DIR (of the programs),
# DATABASE_URL, TRANSPORT_URL, API_PASTE_INI (Nova's), ENABLED_SERVICES, and what
# local.conf would set.
#
# Most variables are for the plugin:
# shellcheck disable=SC2034

set -o errexit
set -o nounset

function note {
    echo "${FUNCNAME[1]} $*" >> "$STATE/calls"
}

function die {
    shift
    echo "$*" | tee -a "$STATE/died" >&2
    exit 1
}

function warn {
    shift
    echo "$*" >> "$STATE/warnings"
}

function echo_summary {
    echo "$*"
}


# INI files
# ---------

# Look for an option. Sets LINES, and in it the place of the section's header
# as HEADER and those of the option as FOUND.
# scan file section option
function scan {
    LINES=()
    HEADER=""
    FOUND=()
    if [[ ! -e "$1" ]]; then
        return
    fi
    mapfile -t LINES < "$1"
    local i inside=False
    for i in "${!LINES[@]}"; do
        if [[ "${LINES[i]}" == "[$2]" ]]; then
            inside=True
            HEADER=$i
        elif [[ "${LINES[i]}" == "["* ]]; then
            inside=False
        elif [[ $inside == True && "${LINES[i]}" =~ ^"$3"[[:blank:]]*= ]]; then
            FOUND+=("$i")
        fi
    done
}

function ini_has_option {
    scan "$@"
    [[ ${#FOUND[@]} -gt 0 ]]
}

function iniget {
    scan "$@"
    if [[ ${#FOUND[@]} -gt 1 ]]; then
        die $LINENO "iniget would run the values of $3 together"
    fi
    iniget_multiline "$@"
}

function iniget_multiline {
    scan "$@"
    local i values=()
    for i in "${FOUND[@]}"; do
        # Without quotes, so blanks at the ends go.
        # shellcheck disable=SC2206
        values+=(${LINES[i]#*=})
    done
    echo "${values[*]}"
}

function iniadd_literal {
    if [[ "$1" == "$NOVA_CONF" && -e "$STATE/in_background" ]]; then
        die $LINENO "a process in the background would undo $3"
    fi
    scan "$1" "$2" "$3"
    LINES[HEADER]+=$'\n'"$3 = $4"
    printf '%s\n' "${LINES[@]}" > "$1"
}

function inidelete {
    scan "$@"
    local i
    for i in "${FOUND[@]}"; do
        unset "LINES[$i]"
    done
    printf '%s\n' "${LINES[@]}" > "$1"
}

function iniset {
    scan "$1" "$2" "$3"
    if [[ -z "$HEADER" ]]; then
        printf '\n[%s]\n' "$2" >> "$1"
    fi
    if [[ ${#FOUND[@]} -eq 0 ]]; then
        iniadd_literal "$@"
        return
    fi
    if [[ "$4" == *"&"* ]]; then
        die $LINENO "iniset would spoil the & of $3"
    fi
    local i
    for i in "${FOUND[@]}"; do
        [[ "${LINES[i]}" =~ ^[^=]*=[[:blank:]]* ]]
        LINES[i]=${BASH_REMATCH[0]}$4
    done
    printf '%s\n' "${LINES[@]}" > "$1"
}


# The node
# --------

function trueorfalse {
    local value=${!2:-$1}
    case "${value,,}" in
        1|yes|true) echo True ;;
        *) echo False ;;
    esac
}

function is_service_enabled {
    local service
    # shellcheck disable=SC2068 # as DevStack does
    for service in $@; do
        [[ ",$ENABLED_SERVICES," == *",$service,"* ]] && return 0
        [[ "$service" == nova && ",$ENABLED_SERVICES" == *",n-"* ]] &&
            return 0
    done
    return 1
}

function enable_service {
    local service
    for service in "$@"; do
        if [[ ",$DISABLED_SERVICES," != *",$service,"* ]]; then
            ENABLED_SERVICES+=,$service
        fi
    done
}

function define_plugin {
    [[ "$1" == blazar-sched ]]
}

function ipv6_unquote {
    echo "$1" | tr -d '[]'
}

function get_python_exec_prefix {
    echo "$BIN_DIR"
}

function setup_package {
    note "$@"
}

function pip_install {
    note "$@"
}

function setup_develop {
    note "$@"
}

function setup_dev_lib {
    note "$@"
}

function use_library_from_git {
    [[ ",$LIBS_FROM_GIT," == *",$1,"* ]]
}

function git_clone {
    note "$@"
    mkdir -p "$2"
    if [[ "$1" == */blazar-dashboard.git ]]; then
        mkdir -p "$2/blazar_dashboard/enabled"
        touch "$2/blazar_dashboard/enabled/_90_panelgroup.py" \
            "$2/blazar_dashboard/enabled/__init__.py"
    fi
}

function git_clone_by_name {
    git_clone "${GITREPO[$1]}" "${GITDIR[$1]}" "${GITBRANCH[$1]}"
}

function is_plugin_enabled {
    [[ ",$DEVSTACK_PLUGINS," == *",$1,"* ]]
}

function sudo {
    "$@"
}

function run_process {
    if is_service_enabled "$1"; then
        [[ "$2" == /* ]] || die $LINENO "$2 has no path"
        stop_process "$1"
        echo "$1 $2" >> "$STATE/processes"
    fi
}

function stop_process {
    forget processes "^$1 "
}

function start_tls_proxy {
    note "$@"
}

function apache_site_config_for {
    echo "$STATE/apache/$1.conf"
}

function enable_apache_mod {
    mkdir -p "$STATE/apache"
    remember apache_modules "$1"
}

function write_local_proxy_http_config {
    enable_apache_mod proxy
    enable_apache_mod proxy_http
    echo "ProxyPass \"$3\" \"$2\" retry=0 acquire=1" \
        >> "$(apache_site_config_for "$1")"
    remember apache_sites "$1"
}

function disable_apache_site {
    forget apache_sites "^$1\$"
}

function restart_apache_server {
    note
}

function test_with_retry {
    note "$@"
}

function setup_logging {
    iniset "$1" DEFAULT logging_default_format_string \
        "%(color)s%(levelname)s %(name)s [-%(color)s] %(instance)s%(message)s"
    iniset "$1" DEFAULT logging_context_format_string \
        "%(levelname)s %(name)s [%(request_id)s %(project_name)s] %(message)s"
}

# remember file line
function remember {
    grep -qxsF "$2" "$STATE/$1" || echo "$2" >> "$STATE/$1"
}

# forget file pattern
function forget {
    touch "$STATE/$1"
    sed -i "/$2/ d" "$STATE/$1"
}


# Database and broker
# -------------------

DATABASE_BACKENDS="mysql postgresql"

function initialize_database_backends {
    for DATABASE_TYPE in $DATABASE_BACKENDS; do
        if is_service_enabled "$DATABASE_TYPE"; then
            break
        fi
    done
    DATABASE_HOST=127.0.0.1
    DATABASE_USER=root
    DATABASE_PASSWORD=secret
}

function database_connection_url {
    echo "$DATABASE_URL"
}

function recreate_database {
    note "$@"
    remember databases "$1"
}

function mysql {
    [[ -e "$STATE/up" ]] || return 1
    [[ "${*: -1}" =~ ^"DROP DATABASE IF EXISTS "(.*)";"$ ]]
    forget databases "^${BASH_REMATCH[1]}\$"
}

function psql {
    mysql "$@"
}

function get_transport_url {
    echo "$TRANSPORT_URL"
}

function get_notification_url {
    echo "$TRANSPORT_URL"
}

function iniset_rpc_backend {
    iniset "$2" DEFAULT transport_url "$TRANSPORT_URL"
}

# shellcheck disable=SC2032 # the sudo above can invoke it
function rabbitmqctl {
    [[ -e "$STATE/up" ]] || return 1
    forget queues "^$2\$"
}


# Keystone, and who is in its catalog
# -----------------------------------

function configure_keystone_authtoken_middleware {
    iniset "$1" keystone_authtoken auth_type password
    iniset "$1" keystone_authtoken interface public
    iniset "$1" keystone_authtoken auth_url "$KEYSTONE_SERVICE_URI"
    iniset "$1" keystone_authtoken www_authenticate_uri \
        "$KEYSTONE_SERVICE_URI"
    iniset "$1" keystone_authtoken username "$2"
    iniset "$1" keystone_authtoken password "$SERVICE_PASSWORD"
    iniset "$1" keystone_authtoken user_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" keystone_authtoken project_name "$SERVICE_PROJECT_NAME"
    iniset "$1" keystone_authtoken project_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" keystone_authtoken cafile "$SSL_BUNDLE_FILE"
}

function create_service_user {
    remember users "$1 ${2:-}"
}

function get_or_create_service {
    remember services "$2 $1"
}

function get_or_create_endpoint {
    remember endpoints "$1-$2 $1 $2 $3"
}

function openstack {
    note "$@"
    if [[ "${OS_CLOUD:-}" != devstack-admin || -n "${OS_USERNAME:-}" ]]; then
        die $LINENO "openstack would not be asked as the administrator"
    fi
    [[ -e "$STATE/up" ]] || return 1
    local last="${*: -1}"
    case "$*" in
        "endpoint list --service reservation -f value -c ID")
            cut -d' ' -f1 "$STATE/endpoints"
            ;;
        "endpoint list --service reservation -f value -c ID --region "*)
            awk -v region="$last" '$3 == region { print $1 }' \
                "$STATE/endpoints"
            ;;
        "endpoint delete "*)
            forget endpoints "^$last "
            ;;
        "service delete "*)
            forget services "^$last "
            ;;
        "user delete --domain Default "*)
            forget users "^$last "
            ;;
        "hypervisor list -f value -c Hypervisor Hostname")
            cat "$STATE/hypervisors"
            ;;
        "reservation host list -f value -c hypervisor_hostname")
            cat "$STATE/hosts"
            ;;
        "reservation host create "*)
            echo "$last" >> "$STATE/hosts"
            ;;
        *)
            die $LINENO "unknown: openstack $*"
            ;;
    esac
}


# Nova
# ----

# Write what DevStack writes, unless it is there.
function configure_nova {
    mkdir -p "$NOVA_CONF_DIR"
    if [[ ! -e "$NOVA_CONF" ]]; then
        iniset "$NOVA_CONF" DEFAULT state_path "$NOVA_STATE_PATH"
        iniset "$NOVA_CONF" filter_scheduler enabled_filters "$NOVA_FILTERS"
        iniset "$NOVA_CONF" scheduler workers 2
        iniset_rpc_backend nova "$NOVA_CONF"
        iniset "$NOVA_CONF" oslo_messaging_notifications driver messagingv2
        iniset "$NOVA_CONF" notifications notification_format \
            "$NOVA_NOTIFICATION_FORMAT"
        cp "$NOVA_CONF" "$NOVA_CONF.before"
    fi
    # The conductor of a cell has a bus of its own, and its file is made anew.
    rm -f "$NOVA_CONF_DIR/nova_cell1.conf"
    iniset "$NOVA_CONF_DIR/nova_cell1.conf" DEFAULT transport_url \
        "${TRANSPORT_URL}_cell1"
    if [[ ! -e "$NOVA_API_PASTE_INI" ]]; then
        cp "$API_PASTE_INI" "$NOVA_API_PASTE_INI"
    fi
}


# DevStack goes on while configure_neutron_nova writes into nova.conf.
function async_wait {
    [[ "$1" == configure_neutron_nova ]] && rm -f "$STATE/in_background"
}


# Its scripts
# -----------

# run_phase mode [phase]
function run_phase {
    # shellcheck source=devstack/plugin.sh
    source "$PLUGIN/devstack/plugin.sh" "$@"
}

DISABLED_SERVICES=${DISABLED_SERVICES:-}
DEVSTACK_PLUGINS=${DEVSTACK_PLUGINS:-,blazar-sched}
LIBS_FROM_GIT=${LIBS_FROM_GIT:-}
declare -A GITREPO GITBRANCH GITDIR
GIT_BASE=https://opendev.org
TARGET_BRANCH=master
DEST=$STATE/opt/stack
HORIZON_DIR=$DEST/horizon
STACK_USER=$(id -un)
REGION_NAME=${REGION_NAME:-RegionOne}
SERVICE_HOST=127.0.0.1
SERVICE_LISTEN_ADDRESS=${SERVICE_LISTEN_ADDRESS:-0.0.0.0}
SERVICE_PROTOCOL=http
SERVICE_TIMEOUT=60
SERVICE_PASSWORD=secret
SERVICE_PROJECT_NAME=service
SERVICE_DOMAIN_NAME=Default
# Nobody listens there.
KEYSTONE_SERVICE_URI=http://127.0.0.1:9/identity
SSL_BUNDLE_FILE=$STATE/ca-bundle.pem
ENABLE_DEBUG_LOG_LEVEL=True

# shellcheck source=devstack/override-defaults
source "$PLUGIN/devstack/override-defaults"

NOVA_CONF_DIR=$STATE/etc/nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
NOVA_API_PASTE_INI=$NOVA_CONF_DIR/api-paste.ini
NOVA_STATE_PATH=$STATE/data/nova
NOVA_NOTIFICATION_FORMAT=${NOVA_NOTIFICATION_FORMAT:-unversioned}
NOVA_FILTERS=ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,\
ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,SameHostFilter
TEMPEST_CONFIG=$STATE/etc/tempest.conf
BLAZAR_SCHED_CONF_DIR=$STATE/etc/blazar-sched

# shellcheck source=devstack/settings
source "$PLUGIN/devstack/settings"

case "$1" in
    stack)
        # shellcheck disable=SC2031 # lib/blazar_sched sets one of its own
        export OS_CLOUD=devstack-admin
        initialize_database_backends
        run_phase stack pre-install
        run_phase stack install
        if is_service_enabled nova; then
            configure_nova
        fi
        mkdir -p "$HORIZON_DIR/openstack_dashboard/local/enabled"
        touch "$STATE/up" "$STATE/hosts" "$STATE/in_background"
        run_phase stack post-config
        run_phase stack extra
        # Its computes are known only now.
        echo compute-1 > "$STATE/hypervisors"
        echo compute-2 >> "$STATE/hypervisors"
        run_phase stack test-config
        ;;
    unstack)
        # As its openrc leaves it.
        set +o errexit
        export OS_USERNAME=demo OS_PROJECT_NAME=demo OS_REGION_NAME=RegionOne
        run_phase unstack
        ;;
    clean)
        # It begins with unstack, after which nobody can be asked.
        set +o errexit
        rm -f "$STATE/up"
        run_phase clean
        ;;
esac
