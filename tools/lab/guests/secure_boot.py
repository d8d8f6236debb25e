"""Secure Boot: firmware, shim, GRUB and kernel as they are signed for everybody, and a key of the machine's owner."""

from pathlib import Path

import progress
import repository
from guests import roots

PACKAGES = "ovmf python3-virt-firmware shim-signed grub-efi-amd64-signed mtools dosfstools openssl".split()
# Room for a kernel and its initial RAM disk.
MEGABYTES = 256
# Whom the machine's owner is to be known as; any will do.
OWNER = "5f0c5a4e-9d33-4d5c-9a5f-3f1f0f1b7c11"
GRUB = """linux /vmlinuz {arguments}
initrd /initrd
boot
"""
# Beside the firmware's variables for Microsoft's keys: the owner's key, as MokManager enrols it.
SCRIPT = f"""set -e
openssl x509 -inform der -in "$1" -out key.pem
virt-fw-vars --input /usr/share/OVMF/OVMF_VARS_4M.ms.fd --output vars.fd --add-mok {OWNER} key.pem
rm -f esp.img
truncate -s {MEGABYTES}M esp.img
mkfs.vfat -F 32 esp.img
mmd -i esp.img ::/EFI ::/EFI/BOOT ::/EFI/debian
mcopy -i esp.img /usr/lib/shim/shimx64.efi.signed ::/EFI/BOOT/BOOTX64.EFI
mcopy -i esp.img /usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed ::/EFI/BOOT/grubx64.efi
mcopy -i esp.img grub.cfg ::/EFI/debian/grub.cfg
mcopy -i esp.img "$2" ::/vmlinuz
mcopy -i esp.img "$3" ::/initrd
"""


def machine(directory: Path, key: Path, kernel: Path, initrd: Path, arguments: str) -> list[str]:
    """QEMU's arguments for a machine that starts this kernel, and trusts this certificate (DER) as its owner's."""
    root = roots.made("secure-boot", PACKAGES, [])
    log = repository.fresh_log("secure-boot")
    (directory / "grub.cfg").write_text(GRUB.format(arguments=arguments))
    with progress.step("preparing a start with Secure Boot", log):
        root.run(["sh", "-c", SCRIPT, "sh", str(key), str(kernel), str(initrd)], log, "Secure Boot could not be prepared",
                 directory=directory)
    code = root.path / "usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
    return ["-M", "q35,smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on",
            "-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={code}",
            "-drive", "if=pflash,unit=1,format=raw,file=vars.fd",
            "-drive", "if=none,id=esp,format=raw,file=esp.img", "-device", "virtio-blk-pci,drive=esp,bootindex=1"]
