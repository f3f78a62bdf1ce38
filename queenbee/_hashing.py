"""SHA-1 and SHA-256 for what is small: to load OpenSSL takes longer than most commands hash.

`random` of the standard library takes it from the same place.
"""

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from hashlib import sha1, sha256
else:
    try:
        from _sha1 import sha1
    except ImportError:  # Another Python.
        from hashlib import sha1
    try:
        from _sha2 import sha256
    except ImportError:  # Python 3.11.
        try:
            from _sha256 import sha256
        except ImportError:  # Another Python.
            from hashlib import sha256

__all__ = ["sha1", "sha256"]
