"""Secret draws that anyone can check later: a teacher's key, the commitment published before the deadline, seeds of students."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from tilelab.errors import InputError
from tilelab.grader.draw import class_seed

SCHEMA, VERSION = "tilelab.key", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A teacher's key. Publish ``commitment`` before the deadline; after it publish the whole file."""

    key: bytes
    nonce: bytes

    @property
    def commitment(self) -> str:
        """SHA-256 of key and nonce, in hexadecimal: tells nothing of the key, and fits no other."""
        return hashlib.sha256(self.key + self.nonce).hexdigest()

    def seed(self, puzzle: str, student: str) -> int:
        """Return the seed of a student for a puzzle; names are compared in Unicode's composed form."""
        return class_seed(self.key, puzzle, unicodedata.normalize("NFC", student))


def new_key(path: Path) -> Key:
    """Make a key and write it to ``path``, readable by its owner alone.

    Raises:
        InputError: The file exists, or cannot be written.
    """
    key = Key(key=secrets.token_bytes(32), nonce=secrets.token_bytes(16))
    data = {"schema": SCHEMA, "version": VERSION, "key": key.key.hex(), "nonce": key.nonce.hex(), "commitment": key.commitment}
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as f:
            f.write(json.dumps(data, indent=1) + "\n")
    except FileExistsError:
        raise InputError(f"{path} exists", fix="a key is never replaced; give another name") from None
    except OSError as e:
        raise InputError(f"{path} cannot be written: {e.strerror}", fix="give a file in a folder that exists and is yours") from None
    return key


def load_key(path: Path) -> Key:
    """Read a key file.

    Raises:
        InputError: It is missing, no key file, or does not fit its own commitment.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        key = Key(key=bytes.fromhex(data["key"]), nonce=bytes.fromhex(data["nonce"]))
        known = data["schema"] == SCHEMA and len(key.key) >= 16
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror}", fix="make one with: tilelab puzzles commit FILE") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise InputError(f"{path}: not a key file", fix="make one with: tilelab puzzles commit FILE")
    if data.get("commitment") not in (None, key.commitment):
        raise InputError(f"{path}: key and nonce do not fit the commitment in it", fix="take the file as it was made")
    return key
