#!/usr/bin/env bash
# tools/bundle.sh FOLDER: makes an installed tree independent of the system's packages. What FOLDER/bin/gpumemtrace needs
# besides the C library is copied into FOLDER/lib/gpumemtrace, with the licence of each, and debug information is left out.
set -eu
umask 022
folder=$1
libraries=$folder/lib/gpumemtrace
licences=$folder/share/doc/gpumemtrace/licences
mkdir -p "$libraries" "$licences"

# The C library belongs to the system, and is in step with its dynamic linker.
needed() {
    ldd "$folder/bin/gpumemtrace" |
        awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread)\.so/ { print $1, $3 }'
}

# The package's copyright file; the library may be known to dpkg by its path before /usr was merged.
licence_of() {
    local file owner
    file=$(realpath "$1")
    owner=$(dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}" 2>/dev/null) || {
        echo "gpumemtrace: no package here knows $file: its licence is missing" >&2
        return 0
    }
    owner=$(sed -n '/^diversion /!{s/[,:].*//p;q}' <<<"$owner")
    cp "/usr/share/doc/$owner/copyright" "$licences/$owner"
}

while read -r name path; do
    install -m 755 "$path" "$libraries/$name"
    licence_of "$path"
done < <(needed)
# What is part of the program itself.
for path in /usr/share/javascript/d3/d3.min.js /usr/include/libiberty/demangle.h /usr/include/uthash.h; do
    licence_of "$path"
done

# shellcheck disable=SC2016 # pkg-config's variable, not this shell's
sed -i -E 's,^(prefix|libdir|includedir)=,&${pcfiledir}/../..,' "$folder/lib/pkgconfig/gpumemtrace.pc"

# Where it is unpacked is not known yet.
sed -i -E 's,(^|[ =])/(lib/libgpumemtrace|share/gpumemtrace),\1FOLDER/\2,g' "$folder"/share/man/man7/libgpumemtrace.7

strip --strip-unneeded "$folder/bin/gpumemtrace"
find "$folder/lib" -type f -name '*.so*' -exec strip --strip-unneeded {} +
