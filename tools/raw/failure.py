"""What a case says when the server did not do what it should."""


class Failure(Exception):
    """A case has failed."""


def require(holds: bool, claim: str) -> None:
    """Fail unless something holds."""
    if not holds:
        raise Failure(claim)


def same(what: str, found: bytes, expected: bytes) -> None:
    """Fail unless bytes are the expected ones; show both from the first difference on."""
    if found == expected:
        return
    at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected))) & ~3
    raise Failure(f"{what}: {len(found)} bytes, expected {len(expected)}; from byte {at}: "
                  f"{_words(found[at:])}, expected {_words(expected[at:])}")


def _words(data: bytes) -> str:
    return f"[{data[:48].hex(' ', 4)}{' ...' if len(data) > 48 else ''}]"
