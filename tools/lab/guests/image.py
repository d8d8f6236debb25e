"""What a guest boots from: a disk image that all share read-only, and an initial RAM disk for each kernel."""

from pathlib import Path

import cache
import progress
import repository
from guests import roots
from guests.arch import Arch
from guests.kernels import Kernel

# What the stock kernel needs as modules before it has its root file system; on our own kernel these are built in.
BOOT_MODULES = "virtio_blk ext4 overlay 9pnet_virtio 9p virtio_net virtio_rng".split()
INIT = repository.TESTS / "guest/initramfs-init"
IMAGE_MEGABYTES = 1500


def disk(arch: Arch) -> Path:
    """The root file system of the guests as one read-only ext4 image: far fewer exits than a shared directory."""
    root = roots.guest_root(arch)

    def make(path: Path) -> None:
        log = cache.logs() / f"guest-disk{arch.suffix}.log"
        with progress.step("making the guests' disk image", log):
            argv = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(root.path), str(path / "root.img"),
                    f"{IMAGE_MEGABYTES}M"]
            roots.tool_root().run(argv, log, "the guests' disk image could not be made")

    return cache.entry(f"guest-disk{arch.suffix}", f"{root.path.name} {IMAGE_MEGABYTES}", make) / "root.img"


def initramfs(kernel: Kernel) -> Path:
    """A RAM disk with busybox, the modules that lead to the root file system, and a script that mounts it."""
    busybox = roots.guest_root(kernel.arch).path / "usr/bin/busybox"

    def make(path: Path) -> None:
        log = cache.logs() / f"initramfs-{kernel.name}.log"
        modules = kernel.modules
        script = f"""set -e
mkdir -p tree/bin tree/modules tree/proc tree/sys tree/dev tree/newroot
cp {busybox} tree/bin/
for name in sh mount umount insmod mkdir switch_root echo cat sleep; do ln -s busybox tree/bin/$name; done
cp {INIT} tree/init
chmod 755 tree/init
n=100
for name in {' '.join(BOOT_MODULES)}; do
	modprobe -d {modules} -S {kernel.release} --show-depends $name >> wanted
done
sed -n 's/^insmod \\([^ ]*\\).*/\\1/p' wanted | awk '!seen[$0]++' > files
while read -r file; do
	n=$((n + 1))
	case $file in
	*.xz) xz -dc $file > tree/modules/$n-$(basename $file .xz) ;;
	*) cp $file tree/modules/$n-$(basename $file) ;;
	esac
done < files
cd tree
find . | cpio --quiet -o -H newc | gzip -1 > ../initramfs.gz
cd ..
rm -r tree wanted files
"""
        with progress.step(f"making the initial RAM disk of the {kernel.name} kernel", log):
            roots.tool_root().run(["sh", "-c", script], log, "the initial RAM disk could not be made", directory=path)

    recipe = f"{kernel.path.name} {' '.join(BOOT_MODULES)} {INIT.read_text()} 1"
    return cache.entry(f"initramfs-{kernel.name}", recipe, make) / "initramfs.gz"
