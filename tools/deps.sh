#!/usr/bin/env bash
# Brings the packages that a make target needs, on Debian and Ubuntu.
#
#   tools/deps.sh GROUP            installs what is missing, as root or with a sudo that asks for no password;
#                                  otherwise prints the one line to run, and ends with status 1
#   tools/deps.sh --check GROUP    installs nothing: names what is missing, and ends with status 1
#
# A thing counts as there when it works (the command is found, the header compiles), wherever it came from.
set -u

usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

check_only=
if [ "${1-}" = --check ]; then
    check_only=1
    shift
fi
[ $# -eq 1 ] || usage
group=$1

# group  package  how to tell that it is there
needs() {
    cat <<'ROWS'
build  gcc             command cc
build  libc6-dev       header  stdio.h
build  uthash-dev      header  uthash.h
build  libunwind-dev   header  libunwind.h
build  libdw-dev       header  elfutils/libdwfl.h
build  libiberty-dev   header  libiberty/demangle.h
build  libjansson-dev  header  jansson.h
build  libprotobuf-c-dev  header  protobuf-c/protobuf-c.h
build  protobuf-c-compiler  command protoc-c
build  libsqlite3-dev  header  sqlite3.h
build  zlib1g-dev      header  zlib.h
build  libncurses-dev  header  ncurses.h
build  libjs-d3        file    /usr/share/javascript/d3/d3.min.js
demo   python3         command python3
test   g++             command c++
test   clang           command clang
test   libcmocka-dev   cmocka  cmocka.h
test   python3-pytest  pytest  pytest
test   binutils        command readelf
test   python3-jsonschema  python jsonschema
test   python3-prometheus-client  python prometheus_client
test   strace          command strace
test   libdebuginfod1  library libdebuginfod.so.1
test   libjemalloc2    library libjemalloc.so.2
test   valgrind        command valgrind
page   chromium        command chromium
lint   clang-format    command clang-format
lint   clang-tidy      command clang-tidy
lint   cppcheck        command cppcheck
ci     golang-go       command go
ci     mandoc          command mandoc
ci     python3-yaml    python  yaml
ci     groff-base      command groff
ci     prometheus      command promtool
ci     sqlite3         command sqlite3
ci     zsh             command zsh
ci     dwz             command dwz
ci     fish            command fish
ci     musl-tools      command musl-gcc
ci     pkg-config      command pkg-config
aarch64  gcc-aarch64-linux-gnu  command aarch64-linux-gnu-gcc
aarch64  g++-aarch64-linux-gnu  command aarch64-linux-gnu-g++
aarch64  qemu-user       command qemu-aarch64
ROWS
}

# Which groups a group brings along.
case $group in
build) groups=" build " ;;
demo) groups=" build demo " ;;
test) groups=" build demo test " ;;
lint) groups=" build lint " ;;
# Its tests of the page are left out where no Chromium is; Ubuntu has it as a snap only.
page) groups=" build test page " ;;
# ci: readers of what we write, for tests that are skipped without them
ci) groups=" build demo test page lint ci " ;;
aarch64) groups=" build test aarch64 " ;;
*) usage ;;
esac

compiles() { # the lines of a C file
    printf '%s\n' "$@" | "${CC:-cc}" -E -x c - >/dev/null 2>&1
}

is_there() { # kind, name
    case $1 in
    command) command -v "$2" >/dev/null 2>&1 || { [ "$2" = cc ] && command -v "${CC:-cc}" >/dev/null 2>&1; } ;;
    header) compiles "#include <$2>" ;;
    file) [ -e "$2" ] ;;
    library) compgen -G "/usr/lib*/$2" >/dev/null || compgen -G "/usr/lib/*/$2" >/dev/null ;;
    cmocka) compiles '#include <stdarg.h>' '#include <stddef.h>' '#include <setjmp.h>' '#include <stdint.h>' \
        '#include <cmocka.h>' ;;
    pytest | python) /usr/bin/python3 -c "import $2" >/dev/null 2>&1 ;;
    esac
}

missing=()
while read -r row_group package kind name; do
    case $groups in
    *" $row_group "*) is_there "$kind" "$name" || missing+=("$package") ;;
    esac
done < <(needs)
[ ${#missing[@]} -eq 0 ] && exit 0

# Ubuntu has the browser as a snap only: the rest does not wait for it.
if [ "$group" != page ] && grep -qs '^ID=ubuntu' /etc/os-release; then
    for i in "${!missing[@]}"; do
        [ "${missing[i]}" != chromium ] || unset "missing[i]"
    done
    [ ${#missing[@]} -gt 0 ] || exit 0
fi

install="apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi

give_up() {
    echo "gpumemtrace: $1" >&2
    echo "    sudo apt-get update && sudo $install" >&2
    exit 1
}

if ! command -v apt-get >/dev/null 2>&1; then
    echo "gpumemtrace: this needs what Debian calls: ${missing[*]}" >&2
    echo "Please install them by this system's own package manager and run make again." >&2
    exit 1
fi
[ -z "$check_only" ] || give_up "missing: ${missing[*]}. Please run this line, then make again:"
if [ ${#as_root[@]} -gt 0 ] && ! sudo -n true 2>/dev/null; then
    give_up "missing: ${missing[*]}. Please run this line, then make again:"
fi

echo "gpumemtrace: installing ${missing[*]}"
log=$(mktemp)
config=$(mktemp)
trap 'rm -f "$log" "$config"' EXIT
echo 'Acquire::Retries "3"; Acquire::http::Timeout "30";' >"$config"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive APT_CONFIG="$config" apt-get -q "$@" </dev/null; }
# The package lists may be missing or old: they are fetched only when the first try finds that out.
if ! apt install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        give_up "apt-get could not install them (its last words stand above). Please try this line:"
    fi
fi
