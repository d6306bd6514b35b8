#!/usr/bin/env bash
# Puts the page's own sources together into what comes before the data and what comes after it.
#
#   assemble.sh D3 FOLDER    D3: d3.min.js, version 3; FOLDER: gets before-data.html and after-data.html
#
# page.html says where each part goes, by a line @STYLE@, @DATA@ and @SCRIPT@. Its Content-Security-Policy lets the
# browser run only the very script and style that are put in here, which it knows by their hashes.
set -eu
d3=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
# In the order in which they build on each other; main.js starts everything.
scripts=(words data stacks theme table details graph span timeline holders summary device_memory lists fragmentation main)

grep -q 'version:"3\.' "$d3" || { echo "gpumemtrace: $d3 is not version 3 of d3" >&2; exit 1; }
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
cat "$here/page.css" >"$parts/style"
{
    cat "$here/d3-licence.txt" "$d3"
    printf '\n(() => {\n"use strict";\n'
    for name in "${scripts[@]}"; do cat "$here/$name.js"; done
    printf '})();\n'
} >"$parts/script"
if grep -qi '</script\|<!--' "$parts/script"; then
    echo "gpumemtrace: a script of the page holds what would end it" >&2
    exit 1
fi

# The element's text is what is hashed: with the line breaks around it.
hash() { { echo; cat "$1"; } | sha256sum | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64; }
style_hash=$(hash "$parts/style") script_hash=$(hash "$parts/script")

fill() { # the template on standard input
    while IFS= read -r line; do
        case $line in
        @STYLE@) cat "$parts/style" ;;
        @SCRIPT@) cat "$parts/script" ;;
        *)
            line=${line/@STYLE_HASH@/$style_hash}
            printf '%s\n' "${line/@SCRIPT_HASH@/$script_hash}"
            ;;
        esac
    done
}
mkdir -p "$folder"
sed '/^@DATA@$/,$d' "$here/page.html" | fill >"$folder/before-data.html"
sed '1,/^@DATA@$/d' "$here/page.html" | fill >"$folder/after-data.html"
