"""The types of a kernel (BTF) in its image."""

import struct

import progress

# What they begin with (include/uapi/linux/btf.h): the length is that of the header.
MAGIC, VERSION, HEADER = 0xEB9F, 1, 24


def types_in(image: bytes) -> bytes:
    """Those in an image that is no ELF file, where their own header alone tells of them: the first type follows it."""
    begin = image.find(struct.pack("<HBBII", MAGIC, VERSION, 0, HEADER, 0))
    if begin < 0:
        raise progress.Failure("the kernel's image has no types")
    _, strings, length = struct.unpack_from("<III", image, begin + 12)
    return image[begin:begin + HEADER + strings + length]
