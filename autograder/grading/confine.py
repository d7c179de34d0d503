"""Shuts a forked process in: own namespaces, an empty private file system to write to, no rights.

Works inside bubblewrap as an ordinary user: bubblewrap guards the machine from all submissions,
this guards submissions from each other. Standard library only, because it runs after a fork.
Linux's numbers are from the kernel's headers (include/uapi/linux/{sched,mount,prctl,seccomp}.h).
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import resource
import signal
import struct
import time
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)

_NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 1, 2, 4, 8, 1 << 14, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_NO_NEW_PRIVS, _PR_GET_TID_ADDRESS = 38, 40
_CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x00200000, 0x01000000


@dataclass(frozen=True)
class Limits:
    """What one forked process may use. Seconds: ``cpu`` of processor time (stops loops, however
    busy the machine is), ``step`` without a sign of progress, ``wall`` in all. Bytes: ``memory`` on
    top of what the warm process has, ``output``, ``disk``. ``processes`` counts threads as well."""

    cpu: float = 20.0
    step: float = 40.0
    wall: float = 120.0
    memory: int = 2 << 30
    output: int = 32 << 20
    disk: int = 64 << 20
    processes: int = 64
    may_fork: bool = False


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(*arguments: int) -> int:
    return _libc.prctl(*(ctypes.c_ulong(a) for a in (*arguments, *[0] * (5 - len(arguments)))))


def die_with_parent() -> None:
    """SIGKILL when the parent ends. Cleared by a change of uid, so called again after one."""
    _check(_prctl(_PR_SET_PDEATHSIG, 9), "PR_SET_PDEATHSIG")


def become(uid: int) -> None:
    """Turn root into an ordinary user for good: root would be exempt from limits on processes."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # The change of uid made /proc/self root's; without this no user namespace could be set up.
    _check(_prctl(_PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE")
    die_with_parent()


def fork(namespaces: bool) -> int:
    """``os.fork``; with ``namespaces`` the child is the first process of its own user, mount, pid,
    ipc, net, uts and cgroup namespaces, and has to call ``map_user``. Raises OSError where the
    kernel refuses them.

    ``unshare`` gives a pid namespace only to the next fork, and a second fork of a process with
    torch in it costs as much as the first one; so this is the C library's fork with more flags.
    """
    if not namespaces:
        return os.fork()
    place = ctypes.c_void_p()  # where the C library keeps the number of this thread
    _check(_libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(place), 0, 0, 0), "PR_GET_TID_ADDRESS")
    flags = sum(_NAMESPACES.values()) | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID | signal.SIGCHLD
    thread = (place, None) if platform.machine() == "x86_64" else (None, place)
    number = ctypes.c_long(_numbers()["clone"])
    call = ctypes.PyDLL(None, use_errno=True).syscall  # the child comes back with Python's lock
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    child = call(number, ctypes.c_ulong(flags), None, None, *thread)
    if child == 0:
        python.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    python.PyOS_AfterFork_Parent()
    if child < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return child


def map_user(uid: int, gid: int) -> None:
    """In a new user namespace: be who the parent is, and nobody else."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def private_files(disk: int) -> None:
    """An empty /tmp of ``disk`` bytes, and nothing in /proc: neither environments nor maps."""
    _mount(None, "/", None, _REC | _PRIVATE, None)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, f"size={disk},nr_inodes=2000,mode=700")
    _mount("tmpfs", "/proc", "tmpfs", _RDONLY | _NOSUID | _NODEV | _NOEXEC, "size=4k")
    os.chdir("/tmp")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None):
    text = [t.encode() if t else None for t in (source, target, kind, data)]
    result = _libc.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3])
    _check(result, f"mount {target}")


def address_space() -> int:
    """Bytes of address space that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def set_limits(limits: Limits, used: int, resident: bool = False) -> None:
    """Resource limits. Memory counts address space, on top of the ``used`` bytes that the warm
    process has: it gives Python a clean MemoryError. A ``resident`` process calls ``allow_cpu``
    before each of its jobs."""
    cpu = math.ceil(limits.cpu)
    for name, soft, hard in (
        ("AS", used + limits.memory, used + limits.memory),
        ("CPU", cpu, resource.getrlimit(resource.RLIMIT_CPU)[1] if resident else cpu + 1),
        ("FSIZE", limits.disk, limits.disk),
        ("NPROC", limits.processes, limits.processes),
        ("NOFILE", 256, 256),
        ("CORE", 0, 0),
        ("MEMLOCK", 0, 0),
        ("MSGQUEUE", 0, 0),
    ):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (soft, hard))


def allow_cpu(limits: Limits) -> None:
    """Processor time for one more job."""
    soft = math.ceil(time.process_time() + limits.cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def drop_rights(may_fork: bool) -> None:
    """No capabilities, no way to get any, and a filter of system calls; see ``_filter``."""
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # past the last one that this kernel knows
    die_with_parent()
    _check(_prctl(_PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE")
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "PR_SET_NO_NEW_PRIVS")
    header = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    _check(_libc.capset(header, bytes(24)), "capset")
    program = _filter(may_fork)
    code = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    argument = ctypes.create_string_buffer(fprog, len(fprog))
    result = _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(argument))
    _check(result, "PR_SET_SECCOMP")


# System calls that a kernel's author never needs. The first line would change namespaces or look
# into other processes; the second reaches odd corners of the kernel; the third holds memory that
# no resource limit counts.
_DENIED = [
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "add_key",
    "request_key",
    "keyctl",
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "mount_setattr",
    "open_by_handle_at",
    "memfd_create",
    "memfd_secret",
    "shmget",
    "msgget",
    "semget",
    "mq_open",
]
_PROCESSES = ["fork", "vfork", "execve", "execveat"]

# Numbers of system calls: arch/x86/entry/syscalls/syscall_64.tbl and asm-generic/unistd.h.
_SAME = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "clone3": 435,
    "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_NUMBERS = {
    "x86_64": _SAME | {
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272,
        "setns": 308, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
        "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "userfaultfd": 323,
        "perf_event_open": 298, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
        "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304, "memfd_create": 319,
        "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "clone": 56, "fork": 57,
        "vfork": 58, "execve": 59, "execveat": 322,
    },
    "aarch64": _SAME | {
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "add_key": 217,
        "request_key": 218, "keyctl": 219, "bpf": 280, "userfaultfd": 282, "perf_event_open": 241,
        "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273,
        "delete_module": 106, "open_by_handle_at": 265, "memfd_create": 279, "shmget": 194,
        "msgget": 186, "semget": 190, "mq_open": 180, "clone": 220, "execve": 221,
        "execveat": 281,
    },
}  # fmt: skip
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
_KILL, _ALLOW, _EPERM, _ENOSYS = 0x80000000, 0x7FFF0000, 0x00050001, 0x00050026
_CLONE_THREAD = 0x00010000


def _numbers() -> dict[str, int]:
    machine = platform.machine()
    if machine not in _NUMBERS:
        raise OSError(f"no table of system calls for {machine}")
    return _NUMBERS[machine]


def _filter(may_fork: bool) -> bytes:
    """A seccomp program: the denied calls fail with EPERM, another architecture's calls kill.

    Where no process may be made, ``clone`` works for threads only. ``clone3`` hides its flags from
    a filter, so it says ENOSYS and the C library falls back to ``clone``.
    """
    numbers = _numbers()

    def code(operation: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", operation, if_true, if_false, value)

    load, equal, at_least, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    program = [
        code(load, 4),  # seccomp_data.arch
        code(equal, _ARCHITECTURES[platform.machine()], 1, 0),
        code(answer, _KILL),
        code(load, 0),  # seccomp_data.nr
        code(at_least, 0x40000000, 0, 1),  # x32 calls on x86-64
        code(answer, _KILL),
        code(equal, numbers["clone3"], 0, 1),
        code(answer, _ENOSYS),
    ]
    for name in _DENIED + ([] if may_fork else _PROCESSES):
        if name in numbers:
            program += [code(equal, numbers[name], 0, 1), code(answer, _EPERM)]
    if not may_fork:
        program += [
            code(equal, numbers["clone"], 0, 3),
            code(load, 16),  # the low half of its first argument, the flags
            code(any_bit, _CLONE_THREAD, 1, 0),
            code(answer, _EPERM),
        ]
    return b"".join([*program, code(answer, _ALLOW)])
