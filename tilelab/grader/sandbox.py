"""What a submission's process may not do, on Linux: each guard is a kernel facility reached through ctypes, and each is optional.

The guards protect the machine, not the grade: a grade cannot be forged, because only a Program leaves the process.
They are applied in a forked child, after everything heavy is imported and before the first line of the submission runs.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one submission may use. Simulation is limited in steps; these limits concern capture alone.

    Attributes:
        cpu_seconds: Processor time. Default: 10.
        wall_seconds: Time on the clock, for a submission that sleeps. Default: 20.
        memory_bytes: Memory beyond what the interpreter with TileLang holds. Default: 1 GiB.
        file_bytes: The largest file it may write (into its own empty folder). Default: 1 MiB.
        result_bytes: The largest result (serialised Programs). Default: 64 MiB.
        output_bytes: What it prints beyond this is dropped. Default: 64 KiB.
    """

    cpu_seconds: int = 10
    wall_seconds: int = 20
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 20
    result_bytes: int = 64 << 20
    output_bytes: int = 64 << 10


def confine(limits: Limits, *, writable: str, readable: Iterable[str]) -> tuple[str, ...]:
    """Confine this process for good and return the names of the guards that hold, in the order applied.

    Args:
        limits: Limits on memory, time and files.
        writable: The one folder in which files may be made.
        readable: Folders that may be read; the puzzles' solutions are in none of them.
    """
    guards: list[tuple[str, Callable[[], bool]]] = [
        ("limits", lambda: _rlimits(limits)),
        ("no-new-privileges", _no_new_privileges),
        ("namespaces", _namespaces),
        ("landlock", lambda: _landlock(writable, readable)),
        ("seccomp", _seccomp),
    ]
    held = []
    for name, apply in guards:
        try:
            if apply():
                held.append(name)
        except (OSError, ValueError, AttributeError, ImportError):
            continue
    return tuple(held)


# ------------------------------------------------------------------------------------------------ the guards
def _rlimits(limits: Limits) -> bool:
    import resource as r

    def lower(which: int, value: int) -> None:
        hard = r.getrlimit(which)[1]
        value = value if hard == r.RLIM_INFINITY else min(value, hard)
        r.setrlimit(which, (value, value))

    lower(r.RLIMIT_CORE, 0)
    lower(r.RLIMIT_FSIZE, limits.file_bytes)
    lower(r.RLIMIT_NOFILE, 64)
    soft = limits.cpu_seconds + int(sum(os.times()[:2]))
    r.setrlimit(r.RLIMIT_CPU, (soft, soft + 2))
    if sys.platform == "linux":
        lower(r.RLIMIT_AS, _address_space() + limits.memory_bytes)
    return True


def _address_space() -> int:
    with open("/proc/self/statm") as f:  # noqa: PTH123 (a pseudo file)
        return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_DUMPABLE = 1, 38, 22, 4
_SIGKILL = 9


def _no_new_privileges() -> bool:
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    return True


_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC, _CLONE_NEWUTS = 0x10000000, 0x40000000, 0x08000000, 0x04000000


def _namespaces() -> bool:
    """An empty network and its own IPC; as root directly, otherwise inside a user namespace where the system allows it."""
    wanted = _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    libc = _libc()
    return bool(libc.unshare(wanted | _CLONE_NEWUSER) == 0 or libc.unshare(wanted) == 0)


# Landlock: see landlock(7). Access bits of ABI 1, plus refer (2) and truncate (3).
_READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read file, read folder
_WRITE = (1 << 1) | sum(1 << b for b in range(4, 13))
_SYS_LANDLOCK = {"create": 444, "add": 445, "restrict": 446}


def _landlock(writable: str, readable: Iterable[str]) -> bool:
    libc = _libc()
    abi = libc.syscall(_SYS_LANDLOCK["create"], None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        return False
    handled = _READ | _WRITE | (1 << 13 if abi >= 2 else 0) | (1 << 14 if abi >= 3 else 0)
    attribute = struct.pack("=Q", handled)
    ruleset = _checked(libc.syscall(_SYS_LANDLOCK["create"], attribute, ctypes.c_size_t(len(attribute)), ctypes.c_uint32(0)))
    rules = [(path, _READ) for path in dict.fromkeys(readable)] + [(writable, handled)]
    for path, access in rules:
        if not os.path.exists(path):  # noqa: PTH110
            continue
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):  # noqa: PTH112
            access &= ~((1 << 3) | sum(1 << b for b in range(4, 14)))
        _checked(libc.syscall(_SYS_LANDLOCK["add"], ruleset, ctypes.c_int(1), struct.pack("=Qi", access, folder), ctypes.c_uint32(0)))
        os.close(folder)
    _checked(libc.syscall(_SYS_LANDLOCK["restrict"], ruleset, ctypes.c_uint32(0)))
    os.close(ruleset)
    return True


#: Architecture → (audit constant, numbers of the system calls refused). ``clone`` is looked at apart.
_SECCOMP: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "socket": 41, "socketpair": 53, "connect": 42, "bind": 49,
            "accept": 43, "accept4": 288, "sendto": 44, "ptrace": 101, "kill": 62, "tkill": 200, "process_vm_readv": 310,
            "process_vm_writev": 311, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
            "bpf": 321, "keyctl": 250, "add_key": 248, "io_uring_setup": 425, "perf_event_open": 298, "userfaultfd": 323,
            "init_module": 175, "finit_module": 313, "kexec_load": 246, "reboot": 169, "swapon": 167, "settimeofday": 164,
            "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "open_by_handle_at": 304, "memfd_secret": 447,
            "setsid": 112, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "execve": 221, "execveat": 281, "socket": 198, "socketpair": 199, "connect": 203, "bind": 200, "accept": 202,
            "accept4": 242, "sendto": 206, "ptrace": 117, "kill": 129, "tkill": 130, "process_vm_readv": 270, "process_vm_writev": 271,
            "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "bpf": 280, "keyctl": 219,
            "add_key": 217, "io_uring_setup": 425, "perf_event_open": 241, "userfaultfd": 282, "init_module": 105, "finit_module": 273,
            "kexec_load": 104, "reboot": 142, "swapon": 224, "settimeofday": 170, "pidfd_open": 434, "pidfd_send_signal": 424,
            "pidfd_getfd": 438, "open_by_handle_at": 265, "memfd_secret": 447, "setsid": 157, "rt_sigqueueinfo": 138,
            "rt_tgsigqueueinfo": 240,
        },
    ),
}  # fmt: skip
_CLONE = {"x86_64": (56, 435, 234), "aarch64": (220, 435, 131)}  # clone, clone3, tgkill
_CLONE_THREAD = 0x00010000
_LD, _JEQ, _JSET, _JGE, _RET = 0x20, 0x15, 0x45, 0x35, 0x06  # BPF: load word, jumps, return
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38


def _seccomp() -> bool:
    """A filter that answers EPERM to new processes, programs, sockets, signals and the like; threads are allowed."""
    machine = platform.machine()
    if machine not in _SECCOMP:
        return False
    audit, refused = _SECCOMP[machine]
    clone, clone3, tgkill = _CLONE[machine]
    code = [
        _instruction(_LD, 4),
        _instruction(_JEQ, audit, 1, 0),
        _instruction(_RET, _KILL),
        _instruction(_LD, 0),
    ]
    if machine == "x86_64":  # the x32 calls share the audit constant
        code += [_instruction(_JGE, 0x40000000, 0, 1), _instruction(_RET, _ERRNO | _EPERM)]
    for number in refused.values():
        code += [_instruction(_JEQ, number, 0, 1), _instruction(_RET, _ERRNO | _EPERM)]
    code += [
        _instruction(_JEQ, clone3, 0, 1),  # its flags are behind a pointer: the C library falls back to clone
        _instruction(_RET, _ERRNO | _ENOSYS),
        _instruction(_JEQ, tgkill, 0, 4),  # a process may abort itself, and signal no other
        _instruction(_LD, 16),
        _instruction(_JEQ, os.getpid(), 1, 0),
        _instruction(_RET, _ERRNO | _EPERM),
        _instruction(_RET, _ALLOW),
        _instruction(_JEQ, clone, 0, 3),
        _instruction(_LD, 16),  # the low word of the first argument: the flags
        _instruction(_JSET, _CLONE_THREAD, 1, 0),
        _instruction(_RET, _ERRNO | _EPERM),
        _instruction(_RET, _ALLOW),
    ]
    filter_ = b"".join(code)
    buffer = ctypes.create_string_buffer(filter_, len(filter_))
    program = struct.pack("@HP", len(code), ctypes.addressof(buffer))
    _checked(_libc().prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), program, ctypes.c_ulong(0), ctypes.c_ulong(0)))
    return True


def _instruction(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, k)


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError("not Linux")
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _checked(_libc().prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
