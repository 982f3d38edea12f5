#!/bin/sh
# Makes a Debian mirror in the folder $1: the suite bookworm with one kernel. If there is one, makes
# its index again. Signs the index by the key $2, and makes that if it does not exist.
set -eu
folder=$1 key=$2
home=$folder/$key-key package=$folder/package
suite=$folder/mirror/dists/bookworm file=$folder/mirror/pool/kernel.deb
index=main/binary-amd64/Packages

size() { stat --format %s "$1"; }
sum() { sha256sum "$1" | cut -d' ' -f1; }
gpg() {
    command gpg --batch --yes --quiet --pinentry-mode loopback --passphrase '' --homedir "$home" "$@"
}

if [ ! -e "$file" ]; then
    mkdir -p "$package/DEBIAN" "$package/boot" "${file%/*}" "$suite/${index%/*}"
    printf 'a kernel' >"$package/boot/vmlinuz-6.1.0"
    cat >"$package/DEBIAN/control" <<END
Package: linux-image-cloud-amd64
Version: 6.1
Architecture: amd64
Maintainer: nobody <n@example.org>
Description: a kernel
END
    dpkg-deb --build --root-owner-group "$package" "$file"
fi
cat "$package/DEBIAN/control" - >"$suite/$index" <<END
Filename: pool/kernel.deb
Size: $(size "$file")
SHA256: $(sum "$file")
END
cat >"$folder/Release" <<END
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
    gpg --output "$folder/$key.gpg" --export
fi
gpg --output "$suite/InRelease" --clearsign "$folder/Release"
gpgconf --homedir "$home" --kill all
