#!/usr/bin/env bash
# packages.sh FOLDER PACKAGE…: a system for aarch64 with these packages and what they need, unpacked into FOLDER from this
# system's own mirrors. apt keeps its books there, too: dpkg here is told of no other architecture.
set -eu
folder=$(realpath -m "$1")
shift
rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
: >"$folder/apt/status"
sources=()
apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Install-Recommends=false \
        -o "Dir::State=$folder/apt" -o "Dir::State::status=$folder/apt/status" -o "Dir::Cache=$folder/apt" \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
        -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o Debug::NoLocking=true -o APT::Sandbox::User="$(id -un)" -o APT::Get::AllowUnauthenticated=false "${sources[@]}" "$@"
}
# Ubuntu keeps this architecture on servers of its own.
if grep -q '^ID=ubuntu' /etc/os-release; then
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    echo "deb http://ports.ubuntu.com/ubuntu-ports $codename main universe" >"$folder/apt/sources.list"
    sources=(-o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o "Dir::Etc::sourceparts=-")
fi
apt update
apt install --download-only -y "$@" >"$folder/apt/log"
for package in "$folder"/apt/archives/*.deb; do
    dpkg-deb -x "$package" "$folder"
done
rm -r "$folder/apt"
touch "$folder/whole"
