#!/bin/sh
# Makes a Debian mirror in the directory $1: the suite bookworm with one kernel and one shell. If the
# directory already has a mirror, makes its index again. Signs the index with the key $2, and makes
# the key if it does not exist.
set -eu
directory=$1 key=$2
home=$directory/$key-key
suite=$directory/mirror/dists/bookworm pool=$directory/mirror/pool
index=main/binary-amd64/Packages

size() { stat --format %s "$1"; }
sum() { sha256sum "$1" | cut -d' ' -f1; }
gpg() {
    command gpg --batch --yes --quiet --pinentry-mode loopback --passphrase '' --homedir "$home" "$@"
}

# Makes the package $1 with the file $2, whose text is $3.
package() {
    tree=$directory/$1
    mkdir -p "$tree/DEBIAN" "$tree/${2%/*}"
    printf '%s' "$3" >"$tree/$2"
    chmod 755 "$tree/$2"
    cat >"$tree/DEBIAN/control" <<END
Package: $1
Version: 6.1
Architecture: amd64
Maintainer: nobody <n@example.org>
Description: a package of a test
END
    dpkg-deb --build --root-owner-group "$tree" "$pool/$1.deb"
}

# Prints the records of the packages.
records() {
    for package in linux-image-cloud-amd64 busybox-static; do
        file=$pool/$package.deb
        [ -e "$file" ] || continue
        cat - "$directory/$package/DEBIAN/control" <<END

Filename: pool/$package.deb
Size: $(size "$file")
SHA256: $(sum "$file")
END
    done
}

if [ ! -e "$pool" ]; then
    mkdir -p "$pool" "$suite/${index%/*}"
    package linux-image-cloud-amd64 boot/vmlinuz-6.1.0 'a kernel'
    package busybox-static bin/busybox 'a shell'
fi
records >"$suite/$index"
cat >"$directory/Release" <<END
Origin: Debian
Suite: bookworm
Codename: bookworm
Date: $(LC_ALL=C date --utc --rfc-email | sed 's/+0000/UTC/')
Architectures: amd64
Components: main
SHA256:
 $(sum "$suite/$index") $(size "$suite/$index") $index
END
if [ ! -e "$home" ]; then
    mkdir -m 700 "$home"
    gpg --quick-generate-key mirror@example.org ed25519 sign
    gpg --output "$directory/$key.gpg" --export
fi
gpg --output "$suite/InRelease" --clearsign "$directory/Release"
gpgconf --homedir "$home" --kill all
