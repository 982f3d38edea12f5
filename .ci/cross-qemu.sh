#!/bin/sh
# cross runs this in its image. It installs a QEMU that has a vDSO (8.2 or newer) where cross's
# runner finds it before the image's own. The QEMU is that of a later release, from the archive that
# the image itself uses, with its signature checked.
set -eu
case $1 in
    arm*) arch=arm ;;
    i?86-*) arch=i386 ;;
    *) arch=${1%%-*} ;;
esac
. /etc/os-release
case $ID in
    ubuntu) release='noble universe' package=qemu-user-static program=qemu-$arch-static ;; # 8.2
    debian) release='trixie main' package=qemu-user program=qemu-$arch ;; # 10.0
esac
directory=$(mktemp -d)
cd "$directory"
sed -n "s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/deb \1\2 $release/p" /etc/apt/sources.list | head -n 1 > sources.list
set -- -q -o Dir::Etc::sourcelist="$directory/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$directory/lists" \
    -o Acquire::Languages=none -o APT::Sandbox::User=root
mkdir -p lists/partial
apt-get "$@" update
apt-get "$@" download "$package"
dpkg-deb --fsys-tarfile ./*.deb | tar -x "./usr/bin/$program"
mv "usr/bin/$program" "/usr/local/bin/qemu-$arch"
rm -r "$directory"
"qemu-$arch" --version
